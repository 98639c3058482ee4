-- "Too old" is said to those alone who could read something if its permissions were young: how old a share is that
-- somebody could not see anyway must show in no answer of theirs, neither while it is fresh nor once it is not.

-- The decision in its parts, so that what follows cannot drift from it. First who: the lists that this reading's
-- token passes, and the audiences whose lists all pass, however old they are. They are for the functions below alone;
-- the text is that of decided_ids without the ages.
create function app.passed_lists() returns int[]
  language sql stable security definer set search_path = pg_catalog, nw, pg_temp as $f$
  with token as materialized (
    select (select coalesce(array_agg(p.sid::text), '{}') from principal p
             where p.sid = any (nullif(current_setting('nw.allow', true), '')::text[])) as allow,  -- only the allow set may be cut
           nullif(current_setting('nw.deny', true), '')::text[]
             || (select coalesce(array_agg(p.sid::text), '{}') from principal p where p.unresolvable)
             || (select coalesce(array_agg(p.sid::text), '{}') from principal p
                  where p.listed and not exists (
                    select from unnest(nullif(current_setting('nw.listed', true), '')::text[]) k where k = p.sid)) as deny,
           coalesce(cardinality(nullif(current_setting('nw.deny', true), '')::text[]), 0) > 0 as given)
  select coalesce(array_agg(distinct c.acl_id), '{}')
    from acl_clause c join acl l using (acl_id), token
   where token.given and l.status = 'ok' and c.allow && token.allow and not c.deny && token.deny
$f$;

create function app.passing_ids() returns setof int
  language sql stable security definer set search_path = pg_catalog, nw, pg_temp rows 1000 as $f$
  with passed as materialized (select app.passed_lists() as ids)
  select a.audience_id from audience a join share s using (share_id), passed
   where cardinality(s.acl_ids) > 0 and s.acl_ids <@ passed.ids
     and (select coalesce(bool_and(coalesce(i in (select unnest(p.ids) from passed p), false)), false) from unnest(a.acl_ids) i)
$f$;

-- Then when: the shares whose permissions were all read here, not too long ago, by a clock that was not set back.
-- What is NULL is not young.
create function app.young_shares() returns setof int
  language sql stable security definer set search_path = pg_catalog, nw, pg_temp rows 10 as $f$
  select s.share_id from share s, (select app.place() as here) p
   where s.swept_at > clock_timestamp() - s.max_age and s.swept_at <= clock_timestamp() + interval '5 seconds'
     and coalesce(s.polled_at, s.swept_at) <= clock_timestamp() + interval '5 seconds'
     and s.swept_in = p.here $f$;

create or replace function app.readable_ids() returns setof int
  language sql stable security definer set search_path = pg_catalog, nw, pg_temp rows 1000 as $f$
  select p.audience_id from app.passing_ids() p (audience_id) join audience a using (audience_id)
   where a.share_id in (select app.young_shares()) $f$;
drop function app.decided_ids();

-- The shares that are closed to this reading's token by their age and by nothing else.
create function app.aged_shares() returns setof int
  language sql stable security definer set search_path = pg_catalog, nw, pg_temp rows 10 as $f$
  select a.share_id from app.passing_ids() p (audience_id) join audience a using (audience_id)
   where exists (select from note n where n.audience_id = a.audience_id)
   group by a.share_id having a.share_id not in (select app.young_shares()) $f$;

create or replace function app.too_old() returns boolean
  language sql stable security definer set search_path = pg_catalog, nw, pg_temp as $f$
  select exists (select app.aged_shares()) $f$;

-- Start of the oldest last good poll among the shares of this reading; where it reads nothing, among those closed
-- to it by their age, whose poll the refusal names; where there is none of these, among all.
create or replace function app.as_of() returns timestamptz
  language sql stable security definer set search_path = pg_catalog, nw, pg_temp as $f$
  select coalesce(
    (select min(s.polled_at) from share s
      where s.share_id in (select a.share_id from audience a where a.audience_id in (select unnest(app.ids())))),
    (select min(s.polled_at) from share s where s.share_id in (select app.aged_shares())),
    (select min(s.polled_at) from share s)) $f$;

revoke all on function app.passed_lists(), app.passing_ids(), app.young_shares(), app.aged_shares() from public, notewarden_reader;
