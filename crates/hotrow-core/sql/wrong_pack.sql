-- Raised in place of a SET of hotrow.pack to a value that it does not have. The server would take any value, because it does
-- not know the setting. It raises the error so that the transaction fails there too.
do $$ begin
    raise exception using
        errcode = '22023',
        message = 'invalid value for parameter "hotrow.pack"',
        hint = 'Available values: on, off, shadow, deferred.';
end $$
