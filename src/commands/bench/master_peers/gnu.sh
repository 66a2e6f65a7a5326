#!/bin/sh
# One epoch by GNU sort and join and an awk: steps (1) to (4) of a master on texts, with the URL as the id.
#   gnu.sh REFLOG CURRENT NOW OUT
# CURRENT is a current_log in the order of URLs, NOW a time as in the reflog. OUT gets filtered_log and current_log.
# Domains are those of the URLs that the bench makes: the host without www.
set -eu
export LC_ALL=C
reflog=$1 current=$2 now=$3 out=$4
mkdir -p "$out"
tab=$(printf '\t')
awk=$(command -v mawk || echo awk)

# Seconds of a time as a reflog writes it.
seconds='function seconds(t,  y, m, d) {
  if (substr(t, 1, 8) != day) {
    day = substr(t, 1, 8); y = substr(t, 1, 4) + 0; m = substr(t, 5, 2) + 0; d = substr(t, 7, 2) + 0
    if (m <= 2) { y -= 1; m += 12 }
    midnight = (365 * y + int(y / 4) - int(y / 100) + int(y / 400) + int((153 * (m - 3) + 2) / 5) + d) * 86400
  }
  return midnight + substr(t, 9, 2) * 3600 + substr(t, 11, 2) * 60 + substr(t, 13, 2)
}'

# analyze_dump, sort, group_sum: URL, last time, hits, last tag that says something.
"$awk" -F '\t' -v OFS='\t' -v now="$now" "$seconds"'
  BEGIN { ahead = seconds(now) + 60 }
  { if ($3 > now && seconds($3) > ahead) $3 = now; print $5, $3, NR, $6, $7 }' "$reflog" |
  sort -S 1G -t "$tab" -k1,1 -k2,2 -k3,3n |
  "$awk" -F '\t' -v OFS='\t' '
  function done() { if (url != "") print url, time, hits, tag }
  $1 != url { done(); url = $1; hits = 0; tag = "" }
  { time = $2; hits += $4; if ($5 != "") tag = $5 }
  END { done() }' > "$out/incoming_log"

# JOIN and filter_url.
join -t "$tab" -a 1 -a 2 -o 0,1.2,1.3,1.4,2.2,2.3,2.4,2.5,2.6 "$out/incoming_log" "$current" |
  "$awk" -F '\t' -v OFS='\t' -v now="$now" -v filtered="$out/filtered_log" -v current="$out/current_log" "$seconds"'
  BEGIN { now_s = seconds(now); printf "" > filtered; printf "" > current }
  function domain(url,  host) { host = url; sub(/^https?:\/\/(www\.)?/, "", host); sub(/[\/:].*/, "", host); return host }
  function sent(hits, tag) {
    if ($5 == "") $5 = domain($1)
    print $1, $5, $2, hits, tag > filtered
    print $1, $5, $2, $2, 0, tag > current
  }
  $2 != "" && $6 == "" { sent($3, $4); next }
  $2 != "" {
    if (seconds($2) - seconds($6) > 3600 || ($4 != "" && $9 != "" && $4 != $9)) sent($3 + $8, $4 != "" ? $4 : $9)
    else print $1, $5, $6, ($2 > $7 ? $2 : $7), $3 + $8, ($9 != "" ? $9 : $4) > current
    next
  }
  $8 == 0 { if (now_s - seconds($6) <= 3600) print $1, $5, $6, $7, $8, $9 > current; next }
  { if (now_s - seconds($7) <= 36000) print $1, $5, $6, $7, $8, $9 > current }'
rm "$out/incoming_log"
