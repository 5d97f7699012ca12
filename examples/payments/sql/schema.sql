-- The tables of the payment service. Every other file in this folder is one statement with its own commit. Sequences of
-- these statements survive a crash between any two of them (see README.md, "How a payment is processed").

-- If two programs start at once, the second waits and then finds all tables.
select pg_advisory_xact_lock(hashtext('payments.schema'));

create schema if not exists payments;

-- The intent: the payment that a merchant wants. At most one attempt is under way for it. `state` and `version` are the
-- lock.
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
    attempt uuid,                                  -- the last attempt that began
    authorization_id uuid,                         -- the attempt that holds the money
    gateway text,                                  -- the payment gateway that holds the money
    captured bigint not null default 0,
    refunded bigint not null default 0,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    check (captured between 0 and amount),
    check (refunded between 0 and captured)
) with (fillfactor = 70);
create index if not exists intent_of_merchant on payments.intent (merchant, id);

-- One order to one payment gateway. The row is written before the order is sent. Workers find it as long as `due_at` is
-- set, and finish it if another program has crashed. Its ID is also the gateway's reference.
create table if not exists payments.attempt (
    id uuid primary key,
    intent uuid not null references payments.intent,
    intent_version bigint not null,                -- the intent's version after this attempt has begun
    kind text not null,
    gateway text not null,
    authorization_id uuid not null,                -- the attempt that holds the money; an attempt to hold money names itself
    amount bigint not null check (amount > 0),
    merchant text not null,
    currency text not null,
    intent_amount bigint not null,
    captured_before bigint not null,
    refunded_before bigint not null,
    state text not null default 'started',
    version bigint not null default 1,
    code text,                                     -- the gateway's reason of a refusal
    settled_on date,                               -- the day whose totals contain it
    valid_until timestamptz not null,              -- the gateway refuses it later, so a missing order is then final
    tries integer not null default 0,
    due_at timestamptz,
    created_at timestamptz not null default now(),
    -- If two programs want to take the same step, the second insert conflicts here.
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

-- The hot row: the totals of a merchant's day. Each attempt is added once. See recount_close.sql.
create table if not exists payments.merchant_day (
    merchant text not null,
    day date not null,
    currency text not null,
    epoch bigint not null default 0,               -- odd during a recount
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
    fingerprint bytea not null,                    -- digest of method, path and body
    run uuid not null,                             -- the run that works on it; a takeover sets a new one
    intent uuid not null,
    attempt uuid not null,
    started_at timestamptz not null default now(),
    status integer,                                -- null while the request runs
    answer text
);

-- Events for readers of the change stream, in the form that Debezium's outbox router expects. Rows are only inserted.
create table if not exists payments.outbox (
    id uuid primary key,
    aggregatetype text not null,
    aggregateid text not null,
    type text not null,
    payload jsonb not null,
    at timestamptz not null default now()
);

-- Webhooks of payment gateways, as received. `due_at` is set until the webhook was processed.
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

-- Dependent services that receive notifications.
create table if not exists payments.endpoint (
    name text primary key,
    url text not null,
    secret text not null,
    active boolean not null default true
);

-- Notifications to each of them, if the database has no queues. `due_at` is set until a notification was delivered or is
-- dead.
create table if not exists payments.notification (
    event uuid not null,
    endpoint text not null,
    body text not null,
    state text not null default 'pending',
    tries integer not null default 0,
    error text,
    due_at timestamptz,
    claimed_until timestamptz,                     -- a worker sends it, until then at the latest
    created_at timestamptz not null default now(),
    delivered_at timestamptz,
    primary key (event, endpoint)
);
create index if not exists notification_due_to on payments.notification (endpoint, due_at) where due_at is not null;
