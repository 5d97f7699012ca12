-- Before another session gets the connection: neither currval and lastval nor cached values of sequences are its own.
discard sequences
