-- Whoever flushes the log waits 1.5 ms before, however few others are about to commit. For all who log in from here on.
alter role current_user set commit_delay = 1500;
alter role current_user set commit_siblings = 0
