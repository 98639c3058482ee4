-- name: record
insert into nw.ledger (share_id, path, state, reason, hint) values (%(share_id)s, %(path)s, %(state)s, %(reason)s, %(hint)s)
on conflict (share_id, path) do update
  set state = excluded.state, reason = excluded.reason, hint = excluded.hint,
      attempts = case when nw.ledger.hint <> excluded.hint then 1 else nw.ledger.attempts + 1 end,  -- another version
      since = case when nw.ledger.state = excluded.state then nw.ledger.since else now() end
returning attempts

-- name: clear
delete from nw.ledger where share_id = %(share_id)s and path = any (%(paths)s)

-- name: park
update nw.ledger set state = 'parked' where share_id = %(share_id)s and path = %(path)s

-- name: of_share
select path, state, reason, attempts, since, hint from nw.ledger where share_id = %(share_id)s

-- name: standing
select s.name, l.path, l.state, l.reason, l.attempts, l.since from nw.ledger l join nw.share s using (share_id)
 where s.name = any (%(names)s) order by s.name, l.path
