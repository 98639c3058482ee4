-- name: record
insert into nw.ledger (share_id, path, state, reason, hint, permanent)
values (%(share_id)s, %(path)s, %(state)s, %(reason)s, %(hint)s, %(permanent)s::boolean::int)
on conflict (share_id, path) do update
  set state = excluded.state, reason = excluded.reason, hint = excluded.hint,
      attempts = case when nw.ledger.hint <> excluded.hint then 1 else nw.ledger.attempts + 1 end,  -- another version
      permanent = case when nw.ledger.hint <> excluded.hint then 0 else nw.ledger.permanent end + excluded.permanent,
      since = case when nw.ledger.state = excluded.state then nw.ledger.since else now() end
returning attempts, permanent

-- name: wait
-- Notes whose turn did not come: no try is counted, and what was counted stays.
insert into nw.ledger (share_id, path, state, reason, attempts)
select %(share_id)s, p, 'pending', %(reason)s, 0 from unnest(%(paths)s::bytea[]) p
on conflict (share_id, path) do update
  set state = 'pending', reason = excluded.reason,
      since = case when nw.ledger.state = 'pending' then nw.ledger.since else now() end

-- name: clear
delete from nw.ledger where share_id = %(share_id)s and path = any (%(paths)s)

-- name: park
update nw.ledger set state = 'parked' where share_id = %(share_id)s and path = %(path)s

-- name: of_share
select path, state, reason, attempts, since, hint from nw.ledger where share_id = %(share_id)s

-- name: standing
select s.name, l.path, l.state, l.reason, l.attempts, l.since from nw.ledger l join nw.share s using (share_id)
 where s.name = any (%(names)s) order by s.name, l.path
