-- Who may call what. Runs each time the pack is migrated.

revoke execute on all functions in schema hotrow from public;
-- Rules are no secret, and a gateway asks for them as whoever its client is.
grant usage on schema hotrow to public;
grant execute on function hotrow.merge_rules(text[]), hotrow.fitting_rules(text[]) to public;
