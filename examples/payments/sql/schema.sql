-- The tables of the payment service. Every file beside this one is one statement that commits by itself; what several
-- of them do together survives a crash between any two (see README.md, "How a payment moves").

-- Two programs that start at once: the second waits, and finds everything there.
select pg_advisory_xact_lock(hashtext('payments.schema'));

create schema if not exists payments;

-- What a merchant wants: the intent. One attempt at a time is under way for it: `state` and `version` are the lock.
create table if not exists payments.intent (
    id uuid primary key,
    merchant text not null,
    customer text not null,
    mode text not null,
    amount bigint not null check (amount > 0),
    currency text not null,
    capture_at_once boolean not null,
    state text not null,
    version bigint not null,
    attempt uuid,                                  -- the last that began
    authorization_id uuid,                         -- the attempt that holds the money
    gateway text,                                  -- where it is held
    captured bigint not null default 0,
    refunded bigint not null default 0,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    check (captured between 0 and amount),
    check (refunded between 0 and captured)
) with (fillfactor = 70);
create index if not exists intent_of_merchant on payments.intent (merchant, id);

-- One thing asked of one payment gateway. Written before it is asked, and found by the workers as long as `due_at` is
-- set: whoever died on the way, somebody brings it to its end. Its id is what the gateway knows it by.
create table if not exists payments.attempt (
    id uuid primary key,
    intent uuid not null references payments.intent,
    intent_version bigint not null,                -- the intent's version once this has begun
    kind text not null,
    gateway text not null,
    authorization_id uuid not null,                -- the attempt that holds the money; this one if it asks to
    amount bigint not null check (amount > 0),
    merchant text not null,
    currency text not null,
    intent_amount bigint not null,
    captured_before bigint not null,
    refunded_before bigint not null,
    state text not null default 'started',
    version bigint not null default 1,
    code text,                                     -- why not, in the gateway's words
    settled_on date,                               -- the day in whose totals it counts
    valid_until timestamptz not null,              -- the gateway refuses it later: then "never heard of it" is final
    tries integer not null default 0,
    due_at timestamptz,
    created_at timestamptz not null default now(),
    -- Two that want to take the same step: the second insert finds this.
    constraint attempt_step unique (intent, intent_version)
) with (fillfactor = 70);
create index if not exists attempt_due on payments.attempt (due_at) where due_at is not null;
create index if not exists attempt_settled on payments.attempt (merchant, settled_on) where settled_on is not null;

-- Every change of an intent's state, once.
create table if not exists payments.transition (
    intent uuid not null references payments.intent,
    version bigint not null,
    state_before text not null,
    state text not null,
    attempt uuid not null,
    at timestamptz not null default now(),
    primary key (intent, version)
);

-- The hot row: what a merchant's day adds up to. Each attempt is added once: see recount_close.sql.
create table if not exists payments.merchant_day (
    merchant text not null,
    day date not null,
    currency text not null,
    epoch bigint not null default 0,               -- odd while it is being recounted
    attempts bigint not null default 0,
    declined bigint not null default 0,
    authorized bigint not null default 0,
    captured bigint not null default 0,
    refunded bigint not null default 0,
    primary key (merchant, day, currency)
);

-- Requests by their Idempotency-Key.
create table if not exists payments.request (
    key text primary key,
    fingerprint bytea not null,                    -- of method, path and body
    run uuid not null,                             -- who works on it: a new one when it is taken over
    intent uuid not null,
    attempt uuid not null,
    started_at timestamptz not null default now(),
    status integer,                                -- null while it runs
    answer text
);

-- Events for whoever follows the change stream, in the shape that Debezium's outbox router expects. Insert only.
create table if not exists payments.outbox (
    id uuid primary key,
    aggregatetype text not null,
    aggregateid text not null,
    type text not null,
    payload jsonb not null,
    at timestamptz not null default now()
);

-- What payment gateways told us, as it came. `due_at` is set until it has been worked on.
create table if not exists payments.webhook (
    gateway text not null,
    event text not null,
    body bytea not null,
    received_at timestamptz not null default now(),
    tries integer not null default 0,
    due_at timestamptz,
    primary key (gateway, event)
);
create index if not exists webhook_due on payments.webhook (due_at) where due_at is not null;

-- Dependent services that want to be told.
create table if not exists payments.endpoint (
    name text primary key,
    url text not null,
    secret text not null,
    active boolean not null default true
);

-- What each of them is to be told, where the database has no queues for it: `due_at` is set until it has been, or we
-- gave up.
create table if not exists payments.notification (
    event uuid not null,
    endpoint text not null,
    body text not null,
    state text not null default 'pending',
    tries integer not null default 0,
    error text,
    due_at timestamptz,
    claimed_until timestamptz,                     -- a worker tells it, until then at the latest
    created_at timestamptz not null default now(),
    delivered_at timestamptz,
    primary key (event, endpoint)
);
create index if not exists notification_due_to on payments.notification (endpoint, due_at) where due_at is not null;
