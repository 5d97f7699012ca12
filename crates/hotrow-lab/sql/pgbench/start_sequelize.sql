\if :previous = 0
SET standard_conforming_strings=on\; SET client_min_messages TO warning\; SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE;
\set previous 1
\endif
