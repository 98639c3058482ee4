-- name: uncovered
-- Notes that wait and were never indexed, by share.
select s.name, count(*) from nw.ledger l join nw.share s using (share_id)
 where s.name = any (%(names)s) and l.state <> 'skipped'
   and not exists (select from nw.note n where n.share_id = l.share_id and n.path = l.path)
 group by s.name

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
-- Every indexed note, hidden ones too.
select s.name, count(*) from nw.note n join nw.share s using (share_id) where s.name = any (%(names)s) group by s.name

-- name: cost
-- What model providers were used for since the month began.
select coalesce(sum(input_tokens), 0)::bigint, coalesce(sum(output_tokens), 0)::bigint, coalesce(sum(cost), 0)::float8
  from nw.usage where at >= date_trunc('month', now())
