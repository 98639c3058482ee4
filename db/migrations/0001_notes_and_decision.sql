-- The data model, the row policies and the one permission decision.
--
-- Run as the owner (the indexer's role; not a superuser). The login role notewarden_reader must exist.
-- Tables live in nw, functions that the reader may call in app, the vector type in public.
-- An audience is the notes of one folder that the same people may read; the decision maps a token
-- to audience ids, so that a chunk carries one integer and a changed folder ACL touches one row.

create schema if not exists nw;
create schema if not exists app;

create table nw.share (
  share_id    int generated always as identity primary key,
  name        text not null unique,
  root        text not null,
  link        text,
  identity    jsonb,                                -- device, file id and marker of the root when it was last good
  acl_ids     int[] not null default '{}',          -- lists of the share itself; none stored = nobody, see app.readable_ids
  max_age     interval not null default '24 hours',
  swept_at    timestamptz,                          -- database clock at the START of the last complete permission sweep
  polled_at   timestamptz,                          -- database clock at the start of the last good poll
  embedded_at timestamptz,
  available   boolean not null default true,
  reason      text not null default ''
) with (fillfactor = 50);

create table nw.acl (
  acl_id   int generated always as identity primary key,
  key      bytea not null unique check (octet_length(key) = 32),   -- hash of all that gives the list its meaning
  server   text not null,
  model    text not null,
  role     text not null check (role in ('share', 'parent', 'note')),
  status   text not null check (status in ('ok', 'quarantined')),
  reason   text not null default '',
  owner    text,
  raw      bytea not null,
  entries  text[] not null default '{}'              -- each entry in plain words, in stored order
);

create table nw.acl_clause (
  acl_id int not null references nw.acl on delete cascade,
  n      smallint not null,
  allow  text[] not null,
  deny   text[] not null,
  primary key (acl_id, n)
);

create table nw.principal (                          -- every SID that stands in any clause
  sid          text collate "C" primary key,
  name         text,
  unresolvable boolean not null default false,       -- its members cannot be enumerated: its denies match everybody
  seen_at      timestamptz not null default now()
);
create index principal_unresolvable on nw.principal (sid) where unresolvable;

create table nw.audience (
  audience_id int generated always as identity primary key,
  share_id    int not null references nw.share,
  folder      bytea not null,
  acl_ids     int[] not null check (cardinality(acl_ids) between 1 and 1024),  -- '{}' <@ x is TRUE: never empty
  readers     text[] not null                        -- union of the note list's allow SIDs: what people see
) with (fillfactor = 50);
create index audience_folder on nw.audience (share_id, folder);   -- not unique: an edit in place may make two rows equal

create table nw.generation (                         -- one way to index; exactly one serves
  generation_id int generated always as identity primary key,
  chunker       text not null,
  template      text not null,
  embedder      text not null,
  dimension     int not null check (dimension between 1 and 4000),
  state         text not null check (state in ('building', 'serving', 'retired')),
  created_at    timestamptz not null default now()
);
create unique index generation_serving on nw.generation (state) where state = 'serving';

create table nw.note (
  note_id      bigint generated always as identity primary key,
  share_id     int not null references nw.share,
  path         bytea not null,                       -- as on disk, relative to the share's root; never normalised
  audience_id  int not null references nw.audience,
  content_hash bytea not null check (octet_length(content_hash) = 32),
  size         bigint not null,
  modified_at  timestamptz not null,
  hint         bytea not null,                       -- device, file id, size and times as the listing shows them
  hint_trusted boolean not null default false,       -- they were older than the clock step when the text was read
  own_acl_ids  int[] not null,                       -- the note's own lists as last read together with this text
  title        text not null default '',
  encoding     text not null,
  language     text not null default '',
  written_on   date,                                 -- the date the note gives itself
  status       text not null default '',
  tags         text[] not null default '{}',
  stale        boolean not null default false,       -- its chunks were made for another path or by another rule
  hidden       boolean not null default false,       -- proved gone: in a closed audience until its rows may be removed
  missing      int not null default 0,               -- polls in a row that did not find it
  indexed_at   timestamptz not null default now(),
  verified_at  timestamptz not null default now(),
  unique (share_id, path)
) with (fillfactor = 80);
create index note_audience on nw.note (audience_id);
create index note_hidden on nw.note (share_id) where hidden;
create index note_content on nw.note (share_id, content_hash);

create table nw.note_chunk (
  chunk_id      bigint generated always as identity primary key,
  generation_id int not null references nw.generation,
  note_id       bigint not null references nw.note on delete cascade,
  audience_id   int not null references nw.audience,
  seq           int not null,
  heading       text[] not null,
  first_line    int not null,
  last_line     int not null,
  start_byte    bigint not null,
  end_byte      bigint not null,
  content       text not null,
  embed_key     bytea not null,                      -- sha256 of the exact string that was embedded
  length        int not null,                        -- terms, for BM25
  unique (generation_id, note_id, seq)
);
create index note_chunk_note on nw.note_chunk (note_id);
create index note_chunk_audience on nw.note_chunk (audience_id);
create index note_chunk_embed_key on nw.note_chunk (generation_id, embed_key);

create table nw.audience_size (                      -- what BM25 and the choice of leg need of each audience
  generation_id int not null references nw.generation on delete cascade,
  audience_id   int not null references nw.audience on delete cascade,
  n_chunks      int not null,
  sum_length    bigint not null,
  primary key (generation_id, audience_id)
) with (fillfactor = 50);

create table nw.term (
  term_id int generated always as identity primary key,
  term    text collate "C" not null
);
create unique index term_term on nw.term (term) include (term_id);

create table nw.posting (
  term_id     int not null,
  chunk_id    bigint not null references nw.note_chunk on delete cascade,
  audience_id int not null,
  tf          smallint not null,
  length      smallint not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);
-- index-only scans need the visibility map, so vacuum runs early
create unique index posting_term on nw.posting (term_id, chunk_id) include (audience_id, tf, length);
create index posting_chunk on nw.posting (chunk_id);

create table nw.ledger (                             -- notes in trouble, one row each; path as on disk
  share_id int not null references nw.share,
  path     bytea not null,
  state    text not null check (state in ('pending', 'parked', 'unreadable', 'skipped')),
  reason   text not null,
  attempts int not null default 1,
  since    timestamptz not null default now(),
  hint     bytea,                                    -- of the version in trouble; null when not to be trusted
  primary key (share_id, path)
);

create table nw.narrowed (                           -- notes kept under a narrower declared rule after a rename
  note_id bigint primary key references nw.note on delete cascade,
  old     int[] not null,                            -- the lists that still hold
  beside  int[] not null,                            -- those of the new folder; another rule there ends it
  since   timestamptz not null default now()
);

create table nw.request (                            -- what the admin command or the late check asks of the daemon
  request_id bigint generated always as identity primary key,
  kind       text not null check (kind in ('sync', 'reindex', 'confirm-deletes', 'note')),
  arguments  jsonb not null default '{}',
  asked_at   timestamptz not null default now(),
  taken_at   timestamptz,
  ended_at   timestamptz,
  progress   jsonb,
  result     jsonb,
  exit_code  int
);

create table nw.run (
  run_id     bigint generated always as identity primary key,
  kind       text not null,
  started_at timestamptz not null default clock_timestamp(),
  ended_at   timestamptz,
  daemon     boolean not null default false,
  report     jsonb,
  exit_code  int,
  error      text
);

create table nw.audit (                              -- committed before the first note text leaves
  audit_id bigint generated always as identity primary key,
  at       timestamptz not null default clock_timestamp(),
  actor    text not null,                            -- SID of who really asked
  asker    text not null,                            -- SID whose rights were used
  action   text not null,
  subject  text not null default '',
  detail   jsonb not null default '{}'
);

create table nw.usage (
  usage_id bigint generated always as identity primary key,
  at       timestamptz not null default clock_timestamp(),
  asker    text not null,
  model    text not null,
  input_tokens  bigint not null default 0,
  output_tokens bigint not null default 0,
  cost     numeric not null default 0
);

-- What people see of a chunk's readers; the decision never reads it.
create view nw.chunk_readers with (security_invoker = true) as
  select c.chunk_id, s.name as share, n.path, a.readers
    from nw.note_chunk c join nw.note n using (note_id) join nw.audience a on a.audience_id = c.audience_id
    join nw.share s on s.share_id = n.share_id;

-- The decision -------------------------------------------------------------------------------------

-- From the token in the transaction's settings nw.allow and nw.deny to the audiences it may read:
-- every list of the share and of the audience (parents and note) has a clause whose allow set meets
-- the allow token while its deny set misses the deny token. No token, no rows.
create function app.readable_ids() returns setof int
  language sql stable security definer set search_path = pg_catalog, nw, pg_temp rows 1000 as $f$
  with token as materialized (
    select (select coalesce(array_agg(p.sid::text), '{}') from principal p
             where p.sid = any (nullif(current_setting('nw.allow', true), '')::text[])) as allow,  -- only the allow set may be cut
           nullif(current_setting('nw.deny', true), '')::text[]
             || (select coalesce(array_agg(p.sid::text), '{}') from principal p where p.unresolvable) as deny,
           coalesce(cardinality(nullif(current_setting('nw.deny', true), '')::text[]), 0) > 0 as given),
  passed as materialized (
    select coalesce(array_agg(distinct c.acl_id), '{}') as ids
      from acl_clause c join acl l using (acl_id), token
     where token.given and l.status = 'ok' and c.allow && token.allow and not c.deny && token.deny)
  select a.audience_id from audience a join share s using (share_id), passed
   where cardinality(s.acl_ids) > 0 and s.acl_ids <@ passed.ids and a.acl_ids <@ passed.ids
     and s.swept_at > clock_timestamp() - s.max_age and s.swept_at <= clock_timestamp() + interval '5 seconds'
$f$;

-- Opens a reading: sets the token and the readable audiences for this transaction alone.
create function app.begin(allow text[], deny text[]) returns bigint
  language plpgsql volatile security definer set search_path = pg_catalog, nw, pg_temp as $f$
  declare ids int[];
  begin
    perform set_config('nw.ids', '', true);
    if allow is null or deny is null or cardinality(allow) = 0 or cardinality(deny) = 0
       or array_position(allow, null) is not null or array_position(deny, null) is not null then
      raise exception using errcode = 'NW001', message = 'an empty token may read nothing';
    end if;
    perform set_config('nw.allow', allow::text, true), set_config('nw.deny', deny::text, true);
    ids := array(select app.readable_ids());
    perform set_config('nw.ids', ids::text, true);
    return cardinality(ids);
  end $f$;

-- The audiences of this reading, as its row policies see them.
create function app.ids() returns int[]
  language sql stable set search_path = pg_catalog, pg_temp as $f$
  select coalesce(nullif(current_setting('nw.ids', true), '')::int[], '{}') $f$;

-- Narrows the reading to shares (names) and folders (with all below, at component borders); NULL leaves
-- that side as it is. It can only take audiences away.
create function app.narrow(shares text[], folders bytea[]) returns bigint
  language plpgsql volatile security definer set search_path = pg_catalog, nw, pg_temp as $f$
  declare kept int[];
  begin
    kept := array(
      select a.audience_id from audience a join share s using (share_id)
       where a.audience_id in (select unnest(app.ids()))
         and (shares is null or s.name = any (shares))
         and (folders is null or exists (
               select from unnest(folders) f where f = ''::bytea or a.folder = f
                  or substring(a.folder from 1 for octet_length(f) + 1) = f || '\x2f'::bytea)));
    perform set_config('nw.ids', kept::text, true);
    return cardinality(kept);
  end $f$;

-- Ids of terms the caller can spell; the vocabulary is never listed.
create function app.term_ids(words text[]) returns table (term text, term_id int)
  language sql stable security definer set search_path = pg_catalog, nw, pg_temp rows 20 as $f$
  select t.term::text, t.term_id from term t where t.term = any (words) $f$;

-- Start of the oldest last good poll among the shares of this reading; where it reads nothing, among all.
create function app.as_of() returns timestamptz
  language sql stable security definer set search_path = pg_catalog, nw, pg_temp as $f$
  select coalesce(
    (select min(s.polled_at) from share s
      where s.share_id in (select a.share_id from audience a where a.audience_id in (select unnest(app.ids())))),
    (select min(s.polled_at) from share s)) $f$;

-- The generation that serves, and where its vectors stand.
create function app.serving() returns table (generation_id int, embedder text, dimension int)
  language sql stable security definer set search_path = pg_catalog, nw, pg_temp rows 1 as $f$
  select g.generation_id, g.embedder, g.dimension from generation g where g.state = 'serving' $f$;

-- Whether the schema and the roles are such that row security binds the caller.
create function app.bound() returns boolean
  language sql stable set search_path = pg_catalog, pg_temp as $f$
  select not (r.rolsuper or r.rolbypassrls) and current_user = session_user
     and not exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace
                      where n.nspname in ('nw', 'app') and c.relowner = r.oid)
    from pg_roles r where r.rolname = current_user $f$;

revoke all on all functions in schema app from public;
grant usage on schema app, nw to notewarden_reader;
grant execute on all functions in schema app to notewarden_reader;
grant select on nw.share, nw.audience, nw.note, nw.note_chunk, nw.audience_size, nw.posting to notewarden_reader;
grant insert on nw.audit, nw.usage, nw.request to notewarden_reader;

do $d$
declare t text;
begin
  foreach t in array array['share', 'audience', 'acl', 'acl_clause', 'principal', 'note', 'note_chunk', 'audience_size',
                           'posting', 'term', 'ledger', 'narrowed', 'audit', 'usage', 'request'] loop
    execute format('alter table nw.%I enable row level security', t);
    execute format('alter table nw.%I force row level security', t);
    execute format('create policy writer on nw.%I to current_user using (true) with check (true)', t);
  end loop;
  -- A hashed sub-plan: "= any (current_setting(...))" would be evaluated for each row or lose the index.
  foreach t in array array['audience', 'note', 'note_chunk', 'audience_size', 'posting'] loop
    execute format($p$create policy reader on nw.%I for select to notewarden_reader
      using (audience_id in (select unnest(nullif(current_setting('nw.ids', true), '')::int[])))$p$, t);
  end loop;
  -- A share exists for an asker only if it holds a note they may read.
  execute $p$create policy reader on nw.share for select to notewarden_reader
    using (share_id in (select a.share_id from nw.audience a))$p$;
  foreach t in array array['audit', 'usage'] loop
    execute format('create policy reader on nw.%I for insert to notewarden_reader with check (true)', t);
  end loop;
  execute $p$create policy reader on nw.request for insert to notewarden_reader
    with check (kind = 'note' and taken_at is null and ended_at is null and exit_code is null)$p$;
end $d$;

-- A generation and its table of vectors: fixed dimension, stored plain (no detoasting in exact scans).
create function nw.add_generation(chunker text, template text, embedder text, dimension int, state text) returns int
  language plpgsql volatile set search_path = pg_catalog, nw, public, pg_temp as $f$
  declare id int; name text;
  begin
    insert into generation (chunker, template, embedder, dimension, state)
      values (chunker, template, embedder, dimension, state) returning generation_id into id;
    name := 'vectors_' || id;
    execute format('create table nw.%I (chunk_id bigint primary key references nw.note_chunk on delete cascade,
                    audience_id int not null, embedding vector(%s) not null)', name, dimension);
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
revoke all on function nw.add_generation(text, text, text, int, text) from public;
