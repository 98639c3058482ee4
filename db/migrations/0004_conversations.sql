-- Conversations: what was asked and answered, for its owner alone, and what a day's questions have cost.
--
-- The reader has no rights on these tables. It reaches them through functions that take the asker's SID and give
-- that owner's rows only; whether a turn may still be shown or sent is decided anew from the notes it names.

create table nw.conversation (
  conversation_id bigint generated always as identity primary key,
  owner      text not null,
  nonce      text not null,                          -- of this conversation's placeholders
  begun_at   timestamptz not null default clock_timestamp(),
  touched_at timestamptz not null default clock_timestamp()
);
create index conversation_owner on nw.conversation (owner, touched_at);

create table nw.turn (
  conversation_id bigint not null references nw.conversation on delete cascade,
  n         int not null,
  at        timestamptz not null default clock_timestamp(),
  question  text not null,
  answer    text not null,                           -- '' where the notes did not cover it
  notes     bigint[] not null,                       -- every note that was in its prompt, its history's too
  chunks    bigint[] not null,                       -- the passages that were in its prompt
  citations jsonb not null default '[]',
  primary key (conversation_id, n)
);

create function app.talk_begin(asker text, nonce text) returns bigint
  language sql volatile security definer set search_path = pg_catalog, nw, pg_temp as $f$
  insert into conversation (owner, nonce) values (asker, nonce) returning conversation_id $f$;

-- The asker's last conversation, if it is younger than that.
create function app.talk_latest(asker text, keep interval) returns table (conversation_id bigint, nonce text)
  language sql stable security definer set search_path = pg_catalog, nw, pg_temp rows 1 as $f$
  select c.conversation_id, c.nonce from conversation c
   where c.owner = asker and c.touched_at > clock_timestamp() - keep
   order by c.touched_at desc, c.conversation_id desc limit 1 $f$;

-- The last turns of a conversation that is the asker's, oldest first.
create function app.talk_turns(asker text, conversation bigint, most int)
  returns table (n int, question text, answer text, notes bigint[], chunks bigint[], citations jsonb)
  language sql stable security definer set search_path = pg_catalog, nw, pg_temp rows 10 as $f$
  select last.* from (
    select t.n, t.question, t.answer, t.notes, t.chunks, t.citations
      from turn t join conversation c using (conversation_id)
     where c.owner = asker and c.conversation_id = conversation order by t.n desc limit most) last order by last.n $f$;

-- Adds a turn; into another's conversation it adds none. Tells whether it did.
create function app.talk_add(asker text, conversation bigint, question text, answer text, notes bigint[], chunks bigint[],
                             citations jsonb) returns boolean
  language plpgsql volatile security definer set search_path = pg_catalog, nw, pg_temp as $f$
  begin
    update conversation c set touched_at = clock_timestamp() where c.owner = asker and c.conversation_id = conversation;
    if not found then return false; end if;
    insert into turn (conversation_id, n, question, answer, notes, chunks, citations)
      select conversation, coalesce(max(t.n), 0) + 1, talk_add.question, talk_add.answer, talk_add.notes, talk_add.chunks,
             talk_add.citations from turn t where t.conversation_id = conversation;
    return true;
  end $f$;

create function app.talk_forget(asker text) returns bigint
  language sql volatile security definer set search_path = pg_catalog, nw, pg_temp as $f$
  with gone as (delete from conversation c where c.owner = asker returning 1) select count(*) from gone $f$;

-- What the asker, and everybody together, have spent since midnight (UTC), in US dollars.
create function app.spent(asker text) returns table (person numeric, everybody numeric)
  language sql stable security definer set search_path = pg_catalog, nw, pg_temp rows 1 as $f$
  select coalesce(sum(u.cost) filter (where u.asker = spent.asker), 0), coalesce(sum(u.cost), 0) from usage u
   where u.at >= date_trunc('day', clock_timestamp() at time zone 'UTC') at time zone 'UTC' $f$;
create index usage_at on nw.usage (at);

revoke all on function app.talk_begin(text, text), app.talk_latest(text, interval), app.talk_turns(text, bigint, int),
  app.talk_add(text, bigint, text, text, bigint[], bigint[], jsonb), app.talk_forget(text), app.spent(text) from public;
grant execute on function app.talk_begin(text, text), app.talk_latest(text, interval), app.talk_turns(text, bigint, int),
  app.talk_add(text, bigint, text, text, bigint[], bigint[], jsonb), app.talk_forget(text), app.spent(text) to notewarden_reader;

do $d$
declare t text;
begin
  foreach t in array array['conversation', 'turn'] loop
    execute format('alter table nw.%I enable row level security', t);
    execute format('alter table nw.%I force row level security', t);
    execute format('create policy writer on nw.%I to current_user using (true) with check (true)', t);
  end loop;
end $d$;
