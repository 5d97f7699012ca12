select * from hotrow.reserve(':run', ':buyer', 1, ':high-0000-4000-8000-:low');
