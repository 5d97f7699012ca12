-- Raised in place of a read of currval or lastval if their values are on a connection that the session does not hold.
do $$ begin
    raise exception using
        errcode = '55000',
        message = 'the sequence values of this session are on another connection of the gateway',
        hint = 'Use RETURNING, or begin the session with: set hotrow.pack = off';
end $$
