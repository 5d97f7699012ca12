select pgq.insert_event('orders', 'order', '{"amount": 1}', ':high-0000-4000-8000-:low', null, null, null);
