-- name: quarantined
-- Notes that stand under a list nobody can understand; the closed list of hidden and unread notes is none of these.
-- Mostly there is no such list: then "exists", asked once, spares the look at every note.
select distinct on (s.name, n.path) s.name, n.path, l.reason, n.verified_at
  from nw.note n join nw.share s using (share_id) join nw.audience a using (audience_id)
  join nw.acl l on l.acl_id = any (a.acl_ids || s.acl_ids)
 where s.name = any (%(names)s) and l.status = 'quarantined' and l.model <> 'closed'
   and exists (select from nw.acl x where x.status = 'quarantined' and x.model <> 'closed')
 order by s.name, n.path, l.acl_id

-- name: narrowed
-- Notes that keep a narrower declared rule than their folder has.
select s.name, n.path from nw.narrowed r join nw.note n using (note_id) join nw.share s using (share_id)
 where s.name = any (%(names)s) order by s.name, n.path

-- name: indexed
-- Every indexed note, hidden ones too. While another way to index is built beside the one that serves: those it has.
-- An empty note has no chunk in any.
with building as (select generation_id from nw.generation where state = 'building')
select s.name, count(*) from nw.note n join nw.share s using (share_id)
 where s.name = any (%(names)s)
   and (n.size = 0 or not exists (select from building)
        or exists (select from nw.note_chunk c join building using (generation_id) where c.note_id = n.note_id))
 group by s.name

-- name: expected
-- How many notes should be indexed, by share: while a poll is at work or was broken off, what it saw and does not
-- skip; after it, what stands and what waits. And whether another way to index is being built.
select s.name,
       coalesce(
         seen - (select count(*) from nw.ledger l where l.share_id = s.share_id and l.state = 'skipped'),
         (select count(*) from nw.note n where n.share_id = s.share_id)
         + (select count(*) from nw.ledger l where l.share_id = s.share_id and l.state <> 'skipped'
             and not exists (select from nw.note n where n.share_id = l.share_id and n.path = l.path))),
       exists (select from nw.generation where state = 'building')
  from nw.share s left join lateral (
    select (one->>'seen')::bigint as seen
      from nw.run r cross join lateral jsonb_path_query(r.report, '$.shares[*]') one
     where r.kind <> 'daemon' and (s.polled_at is null or r.started_at > s.polled_at)
       and one->>'share' = s.name and (one->>'seen')::bigint > 0
     order by r.run_id desc limit 1) found on true
 where s.name = any (%(names)s)

-- name: cost
-- What model providers were used for since the month began.
select coalesce(sum(input_tokens), 0)::bigint, coalesce(sum(output_tokens), 0)::bigint, coalesce(sum(cost), 0)::float8
  from nw.usage where at >= date_trunc('month', now())
