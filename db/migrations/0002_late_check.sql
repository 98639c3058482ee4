-- What answers need besides the index itself: the directory as it is now, the lists a late check compares
-- with, and a queue of notes that were found to differ.

-- Its members can be enumerated only while the directory lists it: gone from there, its denies match everybody.
alter table nw.principal add column listed boolean not null default false;
create index principal_listed on nw.principal (sid) where listed;

-- The same decision, with two more ways to be closed: a denied principal that the directory listed at the last
-- sweep and does not list now (setting nw.listed), and a poll that lies in the future, after a clock set back.
create or replace function app.readable_ids() returns setof int
  language sql stable security definer set search_path = pg_catalog, nw, pg_temp rows 1000 as $f$
  with token as materialized (
    select (select coalesce(array_agg(p.sid::text), '{}') from principal p
             where p.sid = any (nullif(current_setting('nw.allow', true), '')::text[])) as allow,  -- only the allow set may be cut
           nullif(current_setting('nw.deny', true), '')::text[]
             || (select coalesce(array_agg(p.sid::text), '{}') from principal p where p.unresolvable)
             || (select coalesce(array_agg(p.sid::text), '{}') from principal p
                  where p.listed and not exists (
                    select from unnest(nullif(current_setting('nw.listed', true), '')::text[]) k where k = p.sid)) as deny,
           coalesce(cardinality(nullif(current_setting('nw.deny', true), '')::text[]), 0) > 0 as given),
  passed as materialized (
    select coalesce(array_agg(distinct c.acl_id), '{}') as ids
      from acl_clause c join acl l using (acl_id), token
     where token.given and l.status = 'ok' and c.allow && token.allow and not c.deny && token.deny)
  select a.audience_id from audience a join share s using (share_id), passed
   where cardinality(s.acl_ids) > 0 and s.acl_ids <@ passed.ids and a.acl_ids <@ passed.ids
     and s.swept_at > clock_timestamp() - s.max_age and s.swept_at <= clock_timestamp() + interval '5 seconds'
     and coalesce(s.polled_at, s.swept_at) <= clock_timestamp() + interval '5 seconds'
$f$;

-- Opens a reading. listed: the SIDs that the directory lists now, where it knows members only by listing them.
drop function app.begin(text[], text[]);
create function app.begin(allow text[], deny text[], listed text[] default null) returns bigint
  language plpgsql volatile security definer set search_path = pg_catalog, nw, pg_temp as $f$
  declare ids int[];
  begin
    perform set_config('nw.ids', '', true);
    if allow is null or deny is null or cardinality(allow) = 0 or cardinality(deny) = 0
       or array_position(allow, null) is not null or array_position(deny, null) is not null then
      raise exception using errcode = 'NW001', message = 'an empty token may read nothing';
    end if;
    perform set_config('nw.allow', allow::text, true), set_config('nw.deny', deny::text, true),
            set_config('nw.listed', coalesce(listed, '{}')::text, true);
    ids := array(select app.readable_ids());
    perform set_config('nw.ids', ids::text, true);
    return cardinality(ids);
  end $f$;

-- The names of the lists that guard these notes, of those that may be read: what a late check compares with.
create function app.policy_keys(notes bigint[]) returns table (note_id bigint, keys bytea[])
  language sql stable security definer set search_path = pg_catalog, nw, pg_temp rows 20 as $f$
  select n.note_id, (select coalesce(array_agg(l.key), '{}') from acl l where l.acl_id = any (a.acl_ids || s.acl_ids))
    from note n join audience a using (audience_id) join share s on s.share_id = n.share_id
   where n.note_id = any (notes) and n.audience_id in (select app.readable_ids()) $f$;

-- Whether no share at all has permissions young enough to count: then "too old" is the truth, not "not found".
create function app.too_old() returns boolean
  language sql stable security definer set search_path = pg_catalog, nw, pg_temp as $f$
  select not exists (
    select from share s where s.swept_at > clock_timestamp() - s.max_age and s.swept_at <= clock_timestamp() + interval '5 seconds'
       and coalesce(s.polled_at, s.swept_at) <= clock_timestamp() + interval '5 seconds') $f$;

revoke all on function app.begin(text[], text[], text[]), app.policy_keys(bigint[]), app.too_old() from public;
grant execute on function app.begin(text[], text[], text[]), app.policy_keys(bigint[]), app.too_old() to notewarden_reader;

-- A note that differs is queued once until somebody takes it up, by its id and nothing else.
create unique index request_note on nw.request ((arguments ->> 'note_id')) where kind = 'note' and taken_at is null;
create index request_open on nw.request (request_id) where taken_at is null;
drop policy reader on nw.request;
create policy reader on nw.request for insert to notewarden_reader
  with check (kind = 'note' and taken_at is null and ended_at is null and exit_code is null and progress is null and result is null
              and jsonb_typeof(arguments -> 'note_id') = 'number' and arguments - 'note_id' = '{}');
