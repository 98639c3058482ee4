-- name: known
-- Everything a poll compares, one row a note.
select path, note_id, audience_id, hint, content_hash,
       (hint_trusted::int + 2 * (hidden or missing > 0)::int + 4 * stale::int)::int
  from nw.note where share_id = %(share_id)s

-- name: own_lists
select note_id, own_acl_ids from nw.note where share_id = %(share_id)s

-- name: unindexed
-- Notes that have no row of this generation yet.
select n.note_id from nw.note n where n.share_id = %(share_id)s and n.size > 0
   and not exists (select from nw.note_chunk c where c.note_id = n.note_id and c.generation_id = %(generation_id)s)

-- name: add
with settled as (delete from nw.ledger where share_id = %(share_id)s and path = %(path)s)
insert into nw.note (note_id, share_id, path, audience_id, content_hash, size, modified_at, hint, hint_trusted, own_acl_ids,
                     title, encoding, language, written_on, status, tags)
overriding system value
values (%(note_id)s, %(share_id)s, %(path)s, %(audience_id)s, %(content_hash)s, %(size)s, %(modified_at)s, %(hint)s, %(hint_trusted)s, %(own_acl_ids)s::int[],
        %(title)s, %(encoding)s, %(language)s, %(written_on)s, %(status)s, %(tags)s)

-- name: replace
with settled as (delete from nw.ledger where share_id = %(share_id)s and path = %(path)s)
update nw.note set path = %(path)s, audience_id = %(audience_id)s, content_hash = %(content_hash)s, size = %(size)s,
       modified_at = %(modified_at)s, hint = %(hint)s, hint_trusted = %(hint_trusted)s, own_acl_ids = %(own_acl_ids)s::int[],
       title = %(title)s, encoding = %(encoding)s, language = %(language)s, written_on = %(written_on)s, status = %(status)s,
       tags = %(tags)s, stale = false, hidden = false, missing = 0, indexed_at = now(), verified_at = now()
 where note_id = %(note_id)s

-- name: make_room
-- Drops the generation's chunks; those of others too unless they are of the very text that comes. Returns the
-- note's audience, and whether there are other generations.
with before as materialized (select audience_id, content_hash from nw.note where note_id = %(note_id)s for update),
other as (select generation_id from nw.generation where state <> 'retired' and generation_id <> %(generation_id)s),
gone as (
  delete from nw.note_chunk c using before b
   where c.note_id = %(note_id)s
     and (c.generation_id = %(generation_id)s
          or b.content_hash <> %(content_hash)s and c.generation_id in (select generation_id from other))
  returning c.generation_id, c.audience_id, c.length),
shrunk as (
  update nw.audience_size z set n_chunks = z.n_chunks - g.n, sum_length = z.sum_length - g.total
    from (select generation_id, audience_id, count(*)::int as n, sum(length)::bigint as total from gone group by 1, 2) g
   where z.generation_id = g.generation_id and z.audience_id = g.audience_id)
select audience_id, exists (select from other) from before

-- name: verified
update nw.note set hint = %(hint)s, hint_trusted = %(hint_trusted)s, own_acl_ids = %(own_acl_ids)s::int[], modified_at = %(modified_at)s,
       hidden = false, missing = 0, verified_at = now()
 where note_id = %(note_id)s

-- name: found
update nw.note set hidden = false, missing = 0 where note_id = any (%(note_ids)s::bigint[])

-- name: rename
-- The rows go on serving under the new path until they are made anew for it.
update nw.note set path = %(path)s, stale = true where note_id = %(note_id)s

-- name: relist
update nw.note set own_acl_ids = %(own_acl_ids)s::int[] where note_id = any (%(note_ids)s::bigint[])

-- name: outdate
update nw.note set stale = true where note_id = any (%(note_ids)s::bigint[])

-- name: hide
update nw.note set hidden = true, missing = missing + 1 where note_id = any (%(note_ids)s::bigint[])

-- name: held
select note_id, path, missing from nw.note where share_id = %(share_id)s and hidden order by path

-- name: delete
delete from nw.note where note_id = any (%(note_ids)s::bigint[]) returning audience_id

-- name: vectors_of
-- Vectors already made for exactly these embedded strings.
select distinct on (c.embed_key) c.embed_key, v.embedding
  from nw.note_chunk c join {vectors} v using (chunk_id)
 where c.generation_id = %(generation_id)s and c.embed_key = any (%(keys)s)

-- name: keep_narrow
insert into nw.narrowed (note_id, old, beside) values (%(note_id)s, %(old)s::int[], %(beside)s::int[])
on conflict (note_id) do update set old = excluded.old, beside = excluded.beside

-- name: narrowed
select r.note_id, r.old, r.beside from nw.narrowed r join nw.note n using (note_id) where n.share_id = %(share_id)s

-- name: release_narrow
delete from nw.narrowed where note_id = any (%(note_ids)s::bigint[])

-- name: policy
-- What guards one note: the lists of its share, and of its audience.
select n.note_id, s.name, n.path, s.acl_ids, a.acl_ids, a.readers, n.hidden
  from nw.note n join nw.share s using (share_id) join nw.audience a using (audience_id)
 where s.name = %(share)s and n.path = %(path)s

-- name: paths
select s.name, n.path from nw.note n join nw.share s using (share_id) where s.name = any (%(shares)s)
