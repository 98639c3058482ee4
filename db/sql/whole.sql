-- name: characters
select coalesce(sum(length(content)), 0)::bigint from nw.note_chunk
 where generation_id = %(generation_id)s and audience_id in (select unnest(app.ids()))
