"""One epoch by Polars: steps (1) to (4) of a master on texts, with the URL as the id.

epoch_polars.py REFLOG CURRENT NOW OUT, as gnu.sh has it. Prints its version and peak memory.
"""
import os
import resource
import sys

os.environ["POLARS_MAX_THREADS"] = "1"
import polars as pl  # noqa: E402

reflog, current, now, out = sys.argv[1:5]
INCOMING = {"batch": pl.String, "priority": pl.Int64, "t": pl.Int64, "page": pl.Int64, "url": pl.String,
            "hits": pl.Int64, "tag": pl.String}
KNOWN = {"url": pl.String, "domain": pl.String, "sent": pl.Int64, "seen": pl.Int64, "chits": pl.Int64,
         "ctag": pl.String}


def read(path, schema):
    if os.path.getsize(path) == 0:
        return pl.LazyFrame(schema=schema)
    return pl.scan_csv(path, separator="\t", has_header=False, quote_char=None, schema=schema)


def seconds(time):
    date = pl.date(time // 10**10, time // 10**8 % 100, time // 10**6 % 100).cast(pl.Int32).cast(pl.Int64)
    return date * 86400 + time // 10**4 % 100 * 3600 + time // 100 % 100 * 60 + time % 100


incoming = read(reflog, INCOMING).group_by("url").agg(
    pl.col("t").max(), pl.col("hits").sum(), pl.col("tag").max())
t, sent = pl.col("t"), pl.col("sent")
joined = (
    incoming.join(read(current, KNOWN), on="url", how="full", coalesce=True)
    .with_columns(is_sent=t.is_not_null() & (
        sent.is_null() | (seconds(t) - seconds(sent) > 3600).fill_null(False)
        | (pl.col("tag") != pl.col("ctag")).fill_null(False)))
    .collect(engine="streaming"))
domain = pl.coalesce("domain", pl.col("url").str.extract(r"^https?://(?:www\.)?([^/:]+)"))
waiting = pl.col("hits").fill_null(0) + pl.col("chits").fill_null(0)
WRITE = {"separator": "\t", "include_header": False, "quote_style": "never"}
joined.filter("is_sent").select("url", domain, "t", waiting, tag=pl.coalesce("tag", "ctag")).write_csv(
    f"{out}/filtered_log", **WRITE)
now_s = seconds(pl.lit(int(now)))
stays = t.is_not_null() | pl.when(pl.col("chits") == 0).then(now_s - seconds(sent) <= 3600).otherwise(
    now_s - seconds(pl.col("seen")) <= 36000)
choose = pl.when("is_sent")
joined.filter(stays).select(
    "url", domain, sent=choose.then(t).otherwise(sent), seen=choose.then(t).otherwise(pl.max_horizontal("seen", "t")),
    hits=choose.then(0).otherwise(waiting),
    tag=choose.then(pl.coalesce("tag", "ctag")).otherwise(pl.coalesce("ctag", "tag"))).write_csv(
    f"{out}/current_log", **WRITE)
print(pl.__version__, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
