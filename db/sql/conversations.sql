-- name: begin
select app.talk_begin(%(asker)s, %(nonce)s)

-- name: latest
select conversation_id, nonce from app.talk_latest(%(asker)s, %(keep)s)

-- name: turns
select question, answer, notes, chunks, citations from app.talk_turns(%(asker)s, %(conversation)s, %(most)s)

-- name: add
select app.talk_add(%(asker)s, %(conversation)s, %(question)s, %(answer)s, %(notes)s::bigint[], %(chunks)s::bigint[], %(citations)s)

-- name: forget
select app.talk_forget(%(asker)s)

-- name: drop_old
delete from nw.conversation where touched_at < clock_timestamp() - %(keep)s::interval
