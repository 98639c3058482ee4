-- name: find
select generation_id, state from nw.generation
 where chunker = %(chunker)s and template = %(template)s and embedder = %(embedder)s and dimension = %(dimension)s
   and state <> 'retired' order by generation_id desc limit 1

-- name: serving
select generation_id from nw.generation where state = 'serving'

-- name: add
select nw.add_generation(%(chunker)s::text, %(template)s::text, %(embedder)s::text, %(dimension)s::int, %(state)s::text)

-- name: retry_parked
-- One more failure for good parks them again.
update nw.ledger set state = 'pending', permanent = permanent - 1 where state = 'parked'

-- name: all
select generation_id from nw.generation where state <> 'retired' order by generation_id

-- name: retire
update nw.generation set state = 'retired', retired_at = clock_timestamp() where generation_id = %(generation_id)s

-- name: serve
update nw.generation set state = 'serving' where generation_id = %(generation_id)s

-- name: building
select generation_id from nw.generation where state = 'building'

-- name: retired
-- The second column: whether no reading can still be under way that began while it served.
select generation_id, coalesce(retired_at, created_at) < clock_timestamp() - %(readings)s::interval
  from nw.generation where state = 'retired' order by generation_id

-- name: remove
delete from nw.generation where generation_id = %(generation_id)s

-- name: fruitless
select fruitless from nw.generation where generation_id = %(generation_id)s

-- name: set_fruitless
update nw.generation set fruitless = %(runs)s where generation_id = %(generation_id)s and fruitless <> %(runs)s

-- name: outdate_lacking
update nw.note n set stale = true where n.size > 0 and not n.stale
   and not exists (select from nw.note_chunk c where c.note_id = n.note_id and c.generation_id = %(generation_id)s)

-- name: tell_lacking
update nw.ledger l set reason = l.reason || %(words)s
  from nw.note n
 where n.share_id = l.share_id and n.path = l.path and l.state = 'parked' and n.size > 0
   and not exists (select from nw.note_chunk c where c.note_id = n.note_id and c.generation_id = %(generation_id)s)

-- name: drop_chunks
-- Part of them: a transaction that takes all would hold up the vacuum of everything else.
with part as (select chunk_id from nw.note_chunk where generation_id = %(generation_id)s limit %(most)s)
delete from nw.note_chunk c using part p where c.chunk_id = p.chunk_id

-- name: drop_vectors
drop table if exists {vectors}
