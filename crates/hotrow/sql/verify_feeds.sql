-- Feeds whose rows contradict each other: one sentence each.
select format('inbox of user %s: the last entry is %s, and the inbox records %s', e.user_id, e.last, coalesce(i.last::text, 'none'))
from (select e.user_id, max(e.number) as last from hotrow.inbox_entry e group by e.user_id) e
    left join hotrow.inbox i on i.user_id = e.user_id
where i.last is null or e.last > i.last
union all
select format('inbox of user %s: read up to %s, and the inbox records %s as the last entry', r.user_id, greatest(r.read_to, upper(r.taken) - 1),
    coalesce(i.last::text, 'none'))
from hotrow.reader r left join hotrow.inbox i on i.user_id = r.user_id
where greatest(r.read_to, upper(r.taken) - 1) > coalesce(i.last, 0)
union all
select format('author %s: the count of followers is %s, and %s users follow', a.author, a.followers, coalesce(f.followers, 0))
from hotrow.author a left join (select f.author, count(*) as followers from hotrow.follow f group by f.author) f
    on f.author = a.author
where a.followers <> coalesce(f.followers, 0)
union all
select format('author %s: has followers, and does not exist', f.author)
from (select distinct f.author from hotrow.follow f) f left join hotrow.author a on a.author = f.author where a.author is null
union all
select format('author %s: the last post is %s, and the author records %s', p.author, p.last, coalesce(a.last_post::text, 'none'))
from (select p.author, max(p.post_id) as last from hotrow.post p group by p.author) p
    left join hotrow.author a on a.author = p.author
where a.last_post is null or p.last > a.last_post
union all
select format('reader %s: posts of author %s are merged up to %s, and the last post is %s', l.user_id, l.author, l.pulled_to,
    coalesce(a.last_post::text, 'none'))
from hotrow.pull l left join hotrow.author a on a.author = l.author
where a.last_post is null or l.pulled_to > a.last_post
union all
select format('reader %s: merges posts of author %s, and does not follow this author', l.user_id, l.author)
from hotrow.pull l left join hotrow.follow f on f.author = l.author and f.user_id = l.user_id where f.author is null
