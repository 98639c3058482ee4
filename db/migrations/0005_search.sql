-- What search needs beyond the exact comparison: small vectors for wide models, a record of how well the
-- approximate leg finds, and the one fact that lets postings be read without looking at chunks.

-- Whether every row belongs to the generation that serves: then a posting need not be asked for its own.
create function app.sole_generation() returns boolean
  language sql stable security definer set search_path = pg_catalog, nw, pg_temp as $f$
  select not exists (select from generation g where g.state = 'building') $f$;
revoke all on function app.sole_generation() from public;
grant execute on function app.sole_generation() to notewarden_reader;

-- How much of the exact top ten the approximate leg found, for random askers of many audiences.
create table nw.recall_check (
  generation_id int primary key references nw.generation on delete cascade,
  checked_at    timestamptz not null default clock_timestamp(),
  chunks        bigint not null,                     -- in the generation then: a check is repeated when they have changed much
  samples       int not null,
  recall        real not null,
  by_index      boolean not null                     -- whether the planner took the index
);
do $d$ begin
  alter table nw.recall_check enable row level security;
  alter table nw.recall_check force row level security;
  execute 'create policy writer on nw.recall_check to current_user using (true) with check (true)';
end $d$;

-- As before, but half-precision from 1,000 dimensions on: a plain-stored row must fit its page, half the bytes
-- are read in an exact scan, and the index of pgvector takes no more than 2,000 dimensions of full ones.
create or replace function nw.add_generation(chunker text, template text, embedder text, dimension int, state text) returns int
  language plpgsql volatile set search_path = pg_catalog, nw, public, pg_temp as $f$
  declare id int; name text;
  begin
    insert into generation (chunker, template, embedder, dimension, state)
      values (chunker, template, embedder, dimension, state) returning generation_id into id;
    name := 'vectors_' || id;
    execute format('create table nw.%I (chunk_id bigint primary key references nw.note_chunk on delete cascade,
                    audience_id int not null, embedding %s(%s) not null)', name,
                    case when dimension >= 1000 then 'halfvec' else 'vector' end, dimension);
    execute format('alter table nw.%I alter embedding set storage plain', name);
    execute format('create index %I on nw.%I (audience_id)', name || '_audience', name);
    execute format('alter table nw.%I enable row level security', name);
    execute format('alter table nw.%I force row level security', name);
    execute format('create policy writer on nw.%I to current_user using (true) with check (true)', name);
    execute format($p$create policy reader on nw.%I for select to notewarden_reader
      using (audience_id in (select unnest(nullif(current_setting('nw.ids', true), '')::int[])))$p$, name);
    execute format('grant select on nw.%I to notewarden_reader', name);
    return id;
  end $f$;
