\set high :text / 65536
\set middle :text / 256 % 256
\set low :text % 256
