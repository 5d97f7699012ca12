-- Objects that SQLAlchemy's tests require.
create extension if not exists citext;
create extension if not exists hstore;
create schema test_schema;
create schema test_schema_2;
