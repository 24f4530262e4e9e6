"""A page around one check, that opens offline."""

import html

STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--line:#d8dde3;--soft:#f4f6f8;--good:#0a6b3d;
--bad:#b3261e}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--paper:#14171a;--line:#363c43;--soft:#1d2125;
--good:#5fd39a;--bad:#ff8a80}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:72rem;padding:1rem;font:1rem/1.55 system-ui,sans-serif;color:var(--ink);
background:var(--paper)}
h1{font-size:1.7rem;line-height:1.2}h2{margin-top:2.5rem;border-bottom:2px solid var(--line)}
h3{margin:2rem 0 .4rem}p{max-width:46rem;margin:.4rem 0}
nav a{margin-right:1rem}
.scroll{overflow-x:auto;border:1px solid var(--line);border-radius:.4rem;margin:.6rem 0}
table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums;width:100%}
th,td{padding:.35rem .6rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
thead th{background:var(--soft)}
th:first-child{text-align:left;position:sticky;left:0;background:var(--soft);white-space:pre-wrap;
min-width:7rem;max-width:15rem;font-weight:600}
table.words td,table.words thead th{text-align:left;white-space:normal;min-width:8rem}
table.words th:first-child{min-width:9rem}table.words td:last-child{min-width:16rem}
td.good{color:var(--good);font-weight:600}td.bad{color:var(--bad);font-weight:600}
figure{margin:1.2rem 0}figure div{background:#fff;border:1px solid var(--line);border-radius:.4rem;
overflow-x:auto;padding:.4rem}
figure img{display:block;width:100%;height:auto}figure img.wide{min-width:38rem}
figcaption{font-size:.9rem;max-width:46rem;margin-top:.3rem}
code{background:var(--soft);padding:.1rem .3rem;border-radius:.2rem;overflow-wrap:anywhere}
footer{margin-top:3rem;font-size:.85rem;border-top:1px solid var(--line)}
"""


def check_page(fragment: str, target: str) -> str:
    """Return a whole page around the fragment of a check."""
    title = html.escape(f"pushforward: check of {target}")
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        f"<title>{title}</title><style>{STYLE}</style></head><body><h1>{title}</h1>{fragment}"
        "<footer><p>Made by <code>pushforward check</code>.</p></footer></body></html>\n"
    )
