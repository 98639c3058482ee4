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
insert into nw.note (share_id, path, audience_id, content_hash, size, modified_at, hint, hint_trusted, own_acl_ids,
                     title, encoding, language, written_on, status, tags)
values (%(share_id)s, %(path)s, %(audience_id)s, %(content_hash)s, %(size)s, %(modified_at)s, %(hint)s, %(hint_trusted)s, %(own_acl_ids)s::int[],
        %(title)s, %(encoding)s, %(language)s, %(written_on)s, %(status)s, %(tags)s)
returning note_id

-- name: replace
update nw.note set path = %(path)s, audience_id = %(audience_id)s, content_hash = %(content_hash)s, size = %(size)s,
       modified_at = %(modified_at)s, hint = %(hint)s, hint_trusted = %(hint_trusted)s, own_acl_ids = %(own_acl_ids)s::int[],
       title = %(title)s, encoding = %(encoding)s, language = %(language)s, written_on = %(written_on)s, status = %(status)s,
       tags = %(tags)s, stale = false, hidden = false, missing = 0, indexed_at = now(), verified_at = now()
 where note_id = %(note_id)s

-- name: before
select audience_id, content_hash from nw.note where note_id = %(note_id)s for update

-- name: drop_chunks
with gone as (delete from nw.note_chunk where note_id = %(note_id)s and generation_id = any (%(generation_ids)s::int[])
              returning generation_id, audience_id, length)
select generation_id, audience_id, count(*)::int, sum(length)::bigint from gone group by 1, 2

-- name: add_chunk
insert into nw.note_chunk (generation_id, note_id, audience_id, seq, heading, first_line, last_line, start_byte, end_byte,
                           content, embed_key, length)
values (%(generation_id)s, %(note_id)s, %(audience_id)s, %(seq)s, %(heading)s, %(first_line)s, %(last_line)s, %(start)s, %(end)s,
        %(content)s, %(embed_key)s, %(length)s)
returning chunk_id

-- name: add_vector
insert into {vectors} (chunk_id, audience_id, embedding) values (%(chunk_id)s, %(audience_id)s, %(embedding)s)

-- name: add_postings
insert into nw.posting (term_id, chunk_id, audience_id, tf, length)
select t, c, %(audience_id)s, f, l
  from unnest(%(term_ids)s::int[], %(chunk_ids)s::bigint[], %(tfs)s::int[], %(lengths)s::int[]) as x (t, c, f, l)

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

-- name: terms
select term, term_id from nw.term where term = any (%(words)s)

-- name: add_terms
insert into nw.term (term) select unnest(%(words)s::text[]) on conflict (term) do nothing returning term, term_id

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
