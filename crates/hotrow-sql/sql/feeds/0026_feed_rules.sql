-- Merge rules of feeds. One key space: what locks the same rows is never merged side by side.

select hotrow.add_merge_rule('hotrow.push(bigint,bigint,text,timestamptz,uuid)',
    'hotrow.push_batch(bigint[],bigint[],text[],timestamptz[],uuid[])', 'user_id', 'hotrow.inbox');
select hotrow.add_merge_rule('hotrow.consume(bigint,int,text)', 'hotrow.consume_batch(bigint[],int[],text[])', 'user_id',
    'hotrow.inbox');
-- A post may reach a thousand inboxes at once: few of them in one transaction.
select hotrow.add_merge_rule('hotrow.post(bigint,text,uuid)', 'hotrow.post_batch(bigint[],text[],uuid[])', 'author',
    'hotrow.inbox', 16);
select hotrow.add_merge_rule('hotrow.follow(bigint,bigint,int)', 'hotrow.follow_batch(bigint[],bigint[],int[])', 'followee',
    'hotrow.inbox');
select hotrow.add_merge_rule('hotrow.unfollow(bigint,bigint)', 'hotrow.unfollow_batch(bigint[],bigint[])', 'followee',
    'hotrow.inbox');
