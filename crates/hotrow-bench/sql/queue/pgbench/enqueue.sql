select * from hotrow.enqueue(':run', ':high-0000-4000-8000-:low', '{"amount": 1}');
