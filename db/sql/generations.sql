-- name: find
select generation_id, state from nw.generation
 where chunker = %(chunker)s and template = %(template)s and embedder = %(embedder)s and dimension = %(dimension)s
   and state <> 'retired' order by generation_id desc limit 1

-- name: serving
select generation_id from nw.generation where state = 'serving'

-- name: add
select nw.add_generation(%(chunker)s::text, %(template)s::text, %(embedder)s::text, %(dimension)s::int, %(state)s::text)

-- name: all
select generation_id from nw.generation where state <> 'retired' order by generation_id

-- name: retire
update nw.generation set state = 'retired' where generation_id = %(generation_id)s

-- name: serve
update nw.generation set state = 'serving' where generation_id = %(generation_id)s

-- name: outdate_lacking
update nw.note n set stale = true where n.size > 0 and not n.stale
   and not exists (select from nw.note_chunk c where c.note_id = n.note_id and c.generation_id = %(generation_id)s)

-- name: drop_chunks
delete from nw.note_chunk where generation_id = %(generation_id)s

-- name: drop_vectors
drop table if exists {vectors}
