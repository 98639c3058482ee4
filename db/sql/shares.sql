-- name: declare
-- A share as the configuration names it; what is known of it stays.
insert into nw.share (name, root, link, max_age) values (%(name)s, %(root)s, %(link)s, %(max_age)s)
on conflict (name) do update set root = excluded.root, link = excluded.link, max_age = excluded.max_age
returning share_id, name, root, identity, acl_ids, swept_at, polled_at, available, reason

-- name: known
select share_id, name, root, identity, acl_ids, swept_at, polled_at, available, reason from nw.share where name = %(name)s

-- name: close_undeclared
-- A share that the configuration no longer names serves nobody.
update nw.share set acl_ids = '{}', available = false, reason = 'not in the configuration'
 where not name = any (%(names)s) and (acl_ids <> '{}' or available)

-- name: close_after_step
-- A sweep or poll that lies ahead tells of a clock that was set back: how old any sweep is, nobody knows now.
-- One of another place tells of a restore: whatever was taken away since the dump is still granted in it.
update nw.share set swept_at = null
 where swept_at is not null and (greatest(swept_at, polled_at) > clock_timestamp() + interval '5 seconds' or swept_in <> app.place())
    or polled_at > clock_timestamp() + interval '5 seconds'

-- name: set_lists
update nw.share set acl_ids = %(acl_ids)s::int[] where share_id = %(share_id)s and acl_ids is distinct from %(acl_ids)s::int[]

-- name: polled
update nw.share set polled_at = %(started)s, identity = %(identity)s, available = true, reason = ''
 where share_id = %(share_id)s

-- name: swept
update nw.share set swept_at = %(started)s where share_id = %(share_id)s

-- name: embedded
update nw.share set embedded_at = clock_timestamp() where share_id = %(share_id)s

-- name: unavailable
update nw.share set available = false, reason = %(reason)s where share_id = %(share_id)s

-- name: held
select count(*) from nw.note where share_id = %(share_id)s and hidden

-- name: clock
select clock_timestamp()

-- name: overview
select s.name, s.available, s.reason, s.polled_at, s.swept_at, s.embedded_at, s.max_age,
       (select count(*) from nw.note n where n.share_id = s.share_id and not n.hidden) as notes,
       (select count(*) from nw.note n join nw.note_chunk c using (note_id)
         where n.share_id = s.share_id and c.generation_id = (select generation_id from nw.generation where state = 'serving')) as chunks,
       (select count(*) from nw.note n where n.share_id = s.share_id and n.hidden) as held,
       (select count(*) from nw.ledger l where l.share_id = s.share_id and l.state in ('pending', 'parked')) as waiting,
       (select extract(epoch from clock_timestamp() - min(l.since))::float8 from nw.ledger l
         where l.share_id = s.share_id and l.state = 'pending') as oldest_pending_s
  from nw.share s where s.name = any (%(names)s) order by s.name
