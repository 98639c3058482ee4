-- name: known
-- Token vectors already made for exactly these embedded strings.
select distinct on (c.embed_key) c.embed_key, t.vectors
  from nw.note_chunk c join nw.token_vectors t using (chunk_id)
 where c.generation_id = %(generation_id)s and c.embed_key = any (%(keys)s) and t.form = %(form)s

-- name: add
insert into nw.token_vectors (chunk_id, audience_id, form, vectors)
select c.chunk_id, c.audience_id, %(form)s, made.vectors
  from nw.note_chunk c join unnest(%(keys)s::bytea[], %(vectors)s::bytea[]) as made (embed_key, vectors) using (embed_key)
 where c.note_id = %(note_id)s and c.generation_id = %(generation_id)s

-- name: lacking
-- Notes with chunks that have none yet, and how many chunks they have in all.
select c.note_id, count(*)::int from nw.note_chunk c join nw.note n using (note_id)
  left join nw.token_vectors t on t.chunk_id = c.chunk_id and t.form = %(form)s
 where n.share_id = %(share_id)s and c.generation_id = %(generation_id)s
 group by c.note_id having count(*) > count(t.chunk_id) order by c.note_id

-- name: stored
-- Decides again from the token itself, as the last read of text does.
select chunk_id, vectors from nw.token_vectors
 where chunk_id = any (%(chunk_ids)s::bigint[]) and form = %(form)s 
   and audience_id in (select app.readable_among(
         array(select distinct audience_id from nw.token_vectors where chunk_id = any (%(chunk_ids)s::bigint[]))))
