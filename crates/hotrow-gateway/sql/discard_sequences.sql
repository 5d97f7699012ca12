-- Another session's sequence values are forgotten before this session reads currval or lastval here.
discard sequences
