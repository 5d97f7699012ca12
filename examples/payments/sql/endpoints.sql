-- The dependent services.
select name, url, secret, active from payments.endpoint order by name
