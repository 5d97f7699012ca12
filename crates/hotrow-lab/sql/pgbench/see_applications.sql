insert into hotrow_bench.client_application (app_name, seen_at, updated_at, writes) values
    ('application-01', now(), now(), 1), ('application-02', now(), now(), 1),
    ('application-03', now(), now(), 1), ('application-04', now(), now(), 1),
    ('application-05', now(), now(), 1), ('application-06', now(), now(), 1),
    ('application-07', now(), now(), 1), ('application-08', now(), now(), 1),
    ('application-09', now(), now(), 1), ('application-10', now(), now(), 1),
    ('application-11', now(), now(), 1), ('application-12', now(), now(), 1),
    ('application-13', now(), now(), 1), ('application-14', now(), now(), 1),
    ('application-15', now(), now(), 1), ('application-16', now(), now(), 1),
    ('application-17', now(), now(), 1), ('application-18', now(), now(), 1),
    ('application-19', now(), now(), 1), ('application-20', now(), now(), 1)
on conflict (app_name) do update set
    seen_at = excluded.seen_at, updated_at = excluded.updated_at, writes = client_application.writes + 1;
