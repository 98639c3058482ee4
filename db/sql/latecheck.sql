-- name: indexed
-- What is indexed of these notes; the reader gets those it may read.
select n.note_id, s.name, n.path, n.content_hash, n.hint, n.hint_trusted, s.identity -> 'root', s.polled_at
  from nw.note n join nw.share s using (share_id) where n.note_id = any (%(note_ids)s::bigint[])

-- name: policy_keys
select note_id, keys from app.policy_keys(%(note_ids)s::bigint[])

-- name: queue
-- Without a target: a note that waits already is left as it is, and nothing is read.
insert into nw.request (kind, arguments)
select 'note', jsonb_build_object('note_id', one) from unnest(%(note_ids)s::bigint[]) as one
on conflict do nothing

-- name: settle
-- A poll of everything answers every note that was queued before it began.
update nw.request set taken_at = coalesce(taken_at, clock_timestamp()), ended_at = clock_timestamp(), exit_code = %(exit_code)s
 where kind = 'note' and ended_at is null and asked_at < %(before)s
