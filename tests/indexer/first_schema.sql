-- Rows of an index of three notes as the first schema held them; tests/indexer/test_upgrade.py says which.
SELECT nw.add_generation('1/240', '1/terms 1', 'hash/shake256/8', 8, 'serving');
INSERT INTO nw.acl (acl_id, key, server, model, role, status, reason, owner, raw, entries) OVERRIDING SYSTEM VALUE VALUES (1, '\xb7c4b12bfdadef5412522c41a021b9d2349d083772aef912d03b660a37322616', '', 'closed', 'note', 'quarantined', 'the note or its permissions could not be read', NULL, '\x', '{}');
INSERT INTO nw.acl (acl_id, key, server, model, role, status, reason, owner, raw, entries) OVERRIDING SYSTEM VALUE VALUES (2, '\x69967343c3e3cb0ecc1f059c589998a908a47aa902805941a0c613b9e5b4b5e9', 'host', 'declared', 'share', 'ok', '', NULL, '\x65766572796f6e65', '{"allow S-1-1-0 everyone: the share declares no readers"}');
INSERT INTO nw.acl (acl_id, key, server, model, role, status, reason, owner, raw, entries) OVERRIDING SYSTEM VALUE VALUES (3, '\xfde7792f2febfd01315820367a37e1bec1f24ec64acbe05c59a71eb48db66e5f', 'host', 'posix', 'note', 'ok', '', 'S-1-22-1-0@host', '\x0000000000000000a40100', '{"allow S-1-22-1-0@host owner rw-","allow S-1-22-2-0@host owning group r--","allow S-1-1-0 other r--"}');
INSERT INTO nw.acl (acl_id, key, server, model, role, status, reason, owner, raw, entries) OVERRIDING SYSTEM VALUE VALUES (4, '\x6e4620926f374ae2bfd87381a800453f54a984c911d503782d94331cf98a0314', 'host', 'posix', 'parent', 'ok', '', 'S-1-22-1-0@host', '\x0000000000000000ed0100', '{"allow S-1-22-1-0@host owner rwx","allow S-1-22-2-0@host owning group r-x","allow S-1-1-0 other r-x"}');
INSERT INTO nw.acl_clause (acl_id, n, allow, deny) VALUES (2, 0, '{S-1-1-0}', '{}');
INSERT INTO nw.acl_clause (acl_id, n, allow, deny) VALUES (3, 0, '{S-1-1-0,S-1-22-1-0@host,S-1-22-2-0@host}', '{}');
INSERT INTO nw.acl_clause (acl_id, n, allow, deny) VALUES (4, 0, '{S-1-1-0,S-1-22-1-0@host,S-1-22-2-0@host}', '{}');
INSERT INTO nw.share (share_id, name, root, link, identity, acl_ids, max_age, swept_at, polled_at, embedded_at, available, reason) OVERRIDING SYSTEM VALUE VALUES (1, 'notes', '/srv/notes', NULL, '{"root": {"inode": 2730093, "device": 65024, "marker": null}, "policy": "e78a1290b3014b8e"}', '{2}', '1 day', '2026-11-29 21:13:26.128329+00', '2026-11-29 21:13:26.128329+00', '2026-11-29 21:13:26.307533+00', true, '');
INSERT INTO nw.audience (audience_id, share_id, folder, acl_ids, readers) OVERRIDING SYSTEM VALUE VALUES (1, 1, '\x', '{3,4}', '{S-1-1-0,S-1-22-1-0@host,S-1-22-2-0@host}');
INSERT INTO nw.audience (audience_id, share_id, folder, acl_ids, readers) OVERRIDING SYSTEM VALUE VALUES (2, 1, '\x7465616d2f6872', '{3,4}', '{S-1-1-0,S-1-22-1-0@host,S-1-22-2-0@host}');
INSERT INTO nw.audience (audience_id, share_id, folder, acl_ids, readers) OVERRIDING SYSTEM VALUE VALUES (3, 1, '\x7465616d', '{3,4}', '{S-1-1-0,S-1-22-1-0@host,S-1-22-2-0@host}');
INSERT INTO nw.audience_size (generation_id, audience_id, n_chunks, sum_length) VALUES (1, 1, 1, 6);
INSERT INTO nw.audience_size (generation_id, audience_id, n_chunks, sum_length) VALUES (1, 2, 1, 10);
INSERT INTO nw.audience_size (generation_id, audience_id, n_chunks, sum_length) VALUES (1, 3, 1, 9);
INSERT INTO nw.note (note_id, share_id, path, audience_id, content_hash, size, modified_at, hint, hint_trusted, own_acl_ids, title, encoding, language, written_on, status, tags, stale, hidden, missing, indexed_at, verified_at) OVERRIDING SYSTEM VALUE VALUES (1, 1, '\x726561646d652e6d64', 1, '\xbc65b66a06de7d000fd81c522f3eb82327995c6fbc00c353348780301b43f707', 56, '2026-11-29 21:13:26+00', '\xd7b629000000000038000000000000004aa2f60b7ca0ec184aa2f60b7ca0ec18', true, '{3}', 'Start here', 'utf-8', 'en', NULL, '', '{start}', false, false, 0, '2026-11-29 21:13:26.257107+00', '2026-11-29 21:13:26.257107+00');
INSERT INTO nw.note (note_id, share_id, path, audience_id, content_hash, size, modified_at, hint, hint_trusted, own_acl_ids, title, encoding, language, written_on, status, tags, stale, hidden, missing, indexed_at, verified_at) OVERRIDING SYSTEM VALUE VALUES (2, 1, '\x7465616d2f68722f7061792e6d64', 2, '\xabddb2021d3af234f86430fecdf32cdcef0c5576dcf6c5ec32cf3f838f042a81', 37, '2026-11-29 21:13:26+00', '\xd6b629000000000025000000000000004ee0f10b7ca0ec184ee0f10b7ca0ec18', true, '{3}', 'Pay', 'utf-8', 'en', NULL, '', '{}', false, false, 0, '2026-11-29 21:13:26.278502+00', '2026-11-29 21:13:26.278502+00');
INSERT INTO nw.note (note_id, share_id, path, audience_id, content_hash, size, modified_at, hint, hint_trusted, own_acl_ids, title, encoding, language, written_on, status, tags, stale, hidden, missing, indexed_at, verified_at) OVERRIDING SYSTEM VALUE VALUES (3, 1, '\x7465616d2f706c616e2e6d64', 3, '\x3ace0e94e640f49bb9158a8cbf60c3c051f9b8482ac822a65ac15c85f00e673e', 44, '2026-11-29 21:13:26+00', '\xceb62900000000002c00000000000000cb52e80b7ca0ec18cb52e80b7ca0ec18', true, '{3}', 'Plan', 'utf-8', 'en', NULL, '', '{}', false, false, 0, '2026-11-29 21:13:26.293852+00', '2026-11-29 21:13:26.293852+00');
INSERT INTO nw.note_chunk (chunk_id, generation_id, note_id, audience_id, seq, heading, first_line, last_line, start_byte, end_byte, content, embed_key, length) OVERRIDING SYSTEM VALUE VALUES (1, 1, 1, 1, 0, '{"Start here"}', 1, 6, 0, 56, '# Start here

Where to find what.
', '\x17dd1662ab8e87c44bcfc45946ef695c0bd2b4f4f7f61d1d1a15fbbd6a930649', 6);
INSERT INTO nw.note_chunk (chunk_id, generation_id, note_id, audience_id, seq, heading, first_line, last_line, start_byte, end_byte, content, embed_key, length) OVERRIDING SYSTEM VALUE VALUES (2, 1, 2, 2, 0, '{Pay}', 1, 3, 0, 37, '# Pay

Bands are reviewed each year.
', '\x195ac70f765aa58d5e1b9a5cbcbb4763b31c0249c2e9eaf3200bba861f0e92d3', 10);
INSERT INTO nw.note_chunk (chunk_id, generation_id, note_id, audience_id, seq, heading, first_line, last_line, start_byte, end_byte, content, embed_key, length) OVERRIDING SYSTEM VALUE VALUES (3, 1, 3, 3, 0, '{Plan}', 1, 3, 0, 44, '# Plan

The move to the new hall is in May.
', '\x276eb3b7da873e4a6049a9583477467f8a9dec7e0a4ea08ca73473d89eb74394', 9);
INSERT INTO nw.posting (term_id, chunk_id, audience_id, tf, length) VALUES (4, 1, 1, 1, 6);
INSERT INTO nw.posting (term_id, chunk_id, audience_id, tf, length) VALUES (3, 1, 1, 1, 6);
INSERT INTO nw.posting (term_id, chunk_id, audience_id, tf, length) VALUES (5, 1, 1, 2, 6);
INSERT INTO nw.posting (term_id, chunk_id, audience_id, tf, length) VALUES (2, 1, 1, 1, 6);
INSERT INTO nw.posting (term_id, chunk_id, audience_id, tf, length) VALUES (1, 1, 1, 1, 6);
INSERT INTO nw.posting (term_id, chunk_id, audience_id, tf, length) VALUES (11, 2, 2, 1, 10);
INSERT INTO nw.posting (term_id, chunk_id, audience_id, tf, length) VALUES (8, 2, 2, 1, 10);
INSERT INTO nw.posting (term_id, chunk_id, audience_id, tf, length) VALUES (9, 2, 2, 3, 10);
INSERT INTO nw.posting (term_id, chunk_id, audience_id, tf, length) VALUES (3, 2, 2, 1, 10);
INSERT INTO nw.posting (term_id, chunk_id, audience_id, tf, length) VALUES (7, 2, 2, 1, 10);
INSERT INTO nw.posting (term_id, chunk_id, audience_id, tf, length) VALUES (10, 2, 2, 1, 10);
INSERT INTO nw.posting (term_id, chunk_id, audience_id, tf, length) VALUES (12, 2, 2, 1, 10);
INSERT INTO nw.posting (term_id, chunk_id, audience_id, tf, length) VALUES (6, 2, 2, 1, 10);
INSERT INTO nw.posting (term_id, chunk_id, audience_id, tf, length) VALUES (11, 3, 3, 1, 9);
INSERT INTO nw.posting (term_id, chunk_id, audience_id, tf, length) VALUES (17, 3, 3, 3, 9);
INSERT INTO nw.posting (term_id, chunk_id, audience_id, tf, length) VALUES (3, 3, 3, 1, 9);
INSERT INTO nw.posting (term_id, chunk_id, audience_id, tf, length) VALUES (15, 3, 3, 1, 9);
INSERT INTO nw.posting (term_id, chunk_id, audience_id, tf, length) VALUES (16, 3, 3, 1, 9);
INSERT INTO nw.posting (term_id, chunk_id, audience_id, tf, length) VALUES (14, 3, 3, 1, 9);
INSERT INTO nw.posting (term_id, chunk_id, audience_id, tf, length) VALUES (13, 3, 3, 1, 9);
INSERT INTO nw.principal (sid, name, unresolvable, seen_at) VALUES ('S-1-1-0', NULL, false, '2026-11-29 21:13:26.251536+00');
INSERT INTO nw.principal (sid, name, unresolvable, seen_at) VALUES ('S-1-22-1-0@host', 'owner', false, '2026-11-29 21:13:26.251536+00');
INSERT INTO nw.principal (sid, name, unresolvable, seen_at) VALUES ('S-1-22-2-0@host', NULL, true, '2026-11-29 21:13:26.251536+00');
INSERT INTO nw.run (run_id, kind, started_at, ended_at, daemon, report, exit_code, error) OVERRIDING SYSTEM VALUE VALUES (1, 'sync', '2026-11-29 21:13:26.099722+00', '2026-11-29 21:13:26.319834+00', false, '{"run": 1, "shares": [{"held": 0, "seen": 3, "added": 3, "moved": 0, "share": "notes", "hashed": 3, "parked": 0, "status": "ok", "changed": 0, "deleted": 0, "pending": 0, "skipped": 0, "unreadable": 0, "acl_changed": 0}], "seconds": 0.22, "chunks_reused": 0, "chunks_embedded": 3}', 0, NULL);
INSERT INTO nw.term (term_id, term) OVERRIDING SYSTEM VALUE VALUES (1, '=readme.md');
INSERT INTO nw.term (term_id, term) OVERRIDING SYSTEM VALUE VALUES (2, '~find');
INSERT INTO nw.term (term_id, term) OVERRIDING SYSTEM VALUE VALUES (3, '~md');
INSERT INTO nw.term (term_id, term) OVERRIDING SYSTEM VALUE VALUES (4, '~readm');
INSERT INTO nw.term (term_id, term) OVERRIDING SYSTEM VALUE VALUES (5, '~start');
INSERT INTO nw.term (term_id, term) OVERRIDING SYSTEM VALUE VALUES (6, '=team/hr/pay.md');
INSERT INTO nw.term (term_id, term) OVERRIDING SYSTEM VALUE VALUES (7, '~band');
INSERT INTO nw.term (term_id, term) OVERRIDING SYSTEM VALUE VALUES (8, '~hr');
INSERT INTO nw.term (term_id, term) OVERRIDING SYSTEM VALUE VALUES (9, '~pay');
INSERT INTO nw.term (term_id, term) OVERRIDING SYSTEM VALUE VALUES (10, '~review');
INSERT INTO nw.term (term_id, term) OVERRIDING SYSTEM VALUE VALUES (11, '~team');
INSERT INTO nw.term (term_id, term) OVERRIDING SYSTEM VALUE VALUES (12, '~year');
INSERT INTO nw.term (term_id, term) OVERRIDING SYSTEM VALUE VALUES (13, '=team/plan.md');
INSERT INTO nw.term (term_id, term) OVERRIDING SYSTEM VALUE VALUES (14, '~hall');
INSERT INTO nw.term (term_id, term) OVERRIDING SYSTEM VALUE VALUES (15, '~move');
INSERT INTO nw.term (term_id, term) OVERRIDING SYSTEM VALUE VALUES (16, '~new');
INSERT INTO nw.term (term_id, term) OVERRIDING SYSTEM VALUE VALUES (17, '~plan');
INSERT INTO nw.vectors_1 (chunk_id, audience_id, embedding) VALUES (1, 1, '[0.35377857,0.28548127,0.53480965,-0.46379963,-0.28423005,-0.044519365,-0.30262548,0.34330574]');
INSERT INTO nw.vectors_1 (chunk_id, audience_id, embedding) VALUES (2, 2, '[-0.32057342,0.37877476,-0.45543292,-0.16621192,0.09021044,-0.36814076,-0.42833465,-0.43769935]');
INSERT INTO nw.vectors_1 (chunk_id, audience_id, embedding) VALUES (3, 3, '[0.20321688,-0.4575426,0.6260189,0.3643637,-0.10320521,0.11419068,0.0010136118,0.44833612]');
SELECT pg_catalog.setval('nw.acl_acl_id_seq', 4, true);
SELECT pg_catalog.setval('nw.audience_audience_id_seq', 3, true);
SELECT pg_catalog.setval('nw.audit_audit_id_seq', 1, true);
SELECT pg_catalog.setval('nw.note_chunk_chunk_id_seq', 3, true);
SELECT pg_catalog.setval('nw.note_note_id_seq', 3, true);
SELECT pg_catalog.setval('nw.request_request_id_seq', 1, true);
SELECT pg_catalog.setval('nw.run_run_id_seq', 1, true);
SELECT pg_catalog.setval('nw.share_share_id_seq', 1, true);
SELECT pg_catalog.setval('nw.term_term_id_seq', 17, true);
SELECT pg_catalog.setval('nw.usage_usage_id_seq', 1, true);




