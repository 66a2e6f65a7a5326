"""One epoch by DuckDB: steps (1) to (4) of a master on texts, with the URL as the id.

epoch_duckdb.py REFLOG CURRENT NOW OUT, as gnu.sh has it. Prints its version and peak memory.
"""
import resource
import sys

import duckdb

reflog, current, now, out = sys.argv[1:5]
con = duckdb.connect()
con.execute("SET threads = 1")
con.execute("SET preserve_insertion_order = false")
CSV = "delim = '\t', header = false, quote = '', escape = '', nullstr = '', auto_detect = false"


def columns(*names):
    kinds = {"hits": "BIGINT", "chits": "BIGINT"}
    return "columns = {" + ", ".join(f"'{name}': '{kinds.get(name, 'VARCHAR')}'" for name in names) + "}"


def seconds(time):
    return f"epoch(strptime({time}, '%Y%m%d%H%M%S'))"


con.execute(f"""
    CREATE TEMP TABLE joined AS
    WITH incoming AS (
        SELECT url, max(t) AS t, sum(hits) AS hits, max_by(tag, t) FILTER (tag IS NOT NULL) AS tag
        FROM read_csv('{reflog}', {CSV}, {columns('batch', 'priority', 't', 'page', 'url', 'hits', 'tag')})
        GROUP BY url),
    known AS (
        SELECT * FROM read_csv('{current}', {CSV}, {columns('url', 'domain', 'sent', 'seen', 'chits', 'ctag')}))
    SELECT coalesce(incoming.url, known.url) AS url, domain, t, hits, tag, sent, seen, chits, ctag,
        t IS NOT NULL AND (sent IS NULL OR {seconds('t')} - {seconds('sent')} > 3600
            OR coalesce(tag <> ctag, false)) AS is_sent
    FROM incoming FULL JOIN known ON incoming.url = known.url""")
DOMAIN = r"coalesce(domain, regexp_extract(url, '^https?://(?:www\.)?([^/:]+)', 1))"
WRITE = "(FORMAT csv, DELIMITER '\t', HEADER false, QUOTE '', ESCAPE '', NULLSTR '')"
con.execute(f"""
    COPY (SELECT url, {DOMAIN}, t, (hits + coalesce(chits, 0))::BIGINT, coalesce(tag, ctag) FROM joined WHERE is_sent)
    TO '{out}/filtered_log' {WRITE}""")
con.execute(f"""
    COPY (SELECT url, {DOMAIN}, CASE WHEN is_sent THEN t ELSE sent END,
        CASE WHEN is_sent THEN t ELSE greatest(seen, coalesce(t, seen)) END,
        CASE WHEN is_sent THEN 0 ELSE (coalesce(hits, 0) + chits)::BIGINT END,
        CASE WHEN is_sent THEN coalesce(tag, ctag) ELSE coalesce(ctag, tag) END
    FROM joined WHERE t IS NOT NULL OR CASE WHEN chits = 0 THEN {seconds(f"'{now}'")} - {seconds('sent')} <= 3600
        ELSE {seconds(f"'{now}'")} - {seconds('seen')} <= 36000 END)
    TO '{out}/current_log' {WRITE}""")
print(duckdb.__version__, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
