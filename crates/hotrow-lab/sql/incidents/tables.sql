-- The hot tables of three public incidents, with the columns that their statements name. `writes` counts the writes of a row
-- whose statement otherwise stores only times, so that the benchmark can compare the rows with the answers.
create schema hotrow_bench;

-- One row for each workflow and event. Each execution of a workflow increments it.
create table hotrow_bench.workflow_statistics (
    count        bigint      not null,
    root_count   bigint      not null,
    name         varchar(64) not null,
    workflow_id  varchar(36) not null,
    latest_event timestamptz not null,
    primary key (workflow_id, name)
);

-- One row for each application. Each server writes all applications that it has seen, every few seconds.
create table hotrow_bench.client_application (
    app_name   varchar(255) primary key,
    seen_at    timestamptz  not null,
    updated_at timestamptz  not null,
    writes     bigint       not null
);

-- One row for each monitored service. Each batch of telemetry writes when the service was last seen.
create table hotrow_bench.service (
    id           int         primary key,
    last_seen_at timestamptz not null,
    writes       bigint      not null
) with (fillfactor = 50);
