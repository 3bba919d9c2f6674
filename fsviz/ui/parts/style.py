"""The style of all pages, beyond what the theme in .streamlit/config.toml says."""

from __future__ import annotations

# Menus fold into "more" where they run out of room: the padding of the toolbar keeps them clear of the tools.
PAGE_STYLE = """
<style>
[data-testid="stHeader"] {height: 3.25rem; min-height: 3.25rem;
  border-bottom: 1px solid color-mix(in srgb, currentColor 16%, transparent)}
[data-testid="stSidebarHeader"] {height: 3.25rem; min-height: 3.25rem; margin-bottom: 0; padding-top: 0;
  padding-bottom: 0; align-items: center}
.block-container, [data-testid="stMainBlockContainer"] {padding: 3.9rem 2.4rem 3rem; max-width: 1500px}
[data-testid="stMainBlockContainer"] > [data-testid="stVerticalBlock"] {gap: .75rem}
[data-testid="stSidebarUserContent"] {padding-top: .25rem}
.st-key-side_page {border-top: 1px solid color-mix(in srgb, currentColor 14%, transparent); padding-top: .8rem}
.st-key-side_foot {border-top: 1px solid color-mix(in srgb, currentColor 14%, transparent); padding-top: .8rem}
h1 {font-size: 1.65rem !important; line-height: 1.2 !important; padding: 0 0 .4rem !important}
[data-testid="stToolbar"] {padding-right: 36rem}
[data-testid="stLayoutWrapper"]:has(> .st-key-fsviz_tools) {position: absolute}
.st-key-fsviz_tools {position: fixed; top: .6rem; right: 1.6rem; z-index: 999991; width: auto !important;
  flex-wrap: nowrap !important; align-items: center}
.st-key-fsviz_tools > * {flex: 0 0 auto !important; width: auto !important}
.st-key-fsviz_tools .st-key-find_question {width: 15rem !important}
.st-key-find_question [role="group"] {height: 2rem; min-height: 2rem}
.st-key-find_question input {font-size: .9rem; padding-top: 0; padding-bottom: 0}
.st-key-fsviz_tools [data-testid="stPopover"] button {font-size: .85rem; padding: 4px 10px; min-height: 2rem;
  border-radius: 8px}
.st-key-fsviz_tools [data-testid="stPopover"] button * {font-size: inherit}
.st-key-fsviz_siblings [data-testid="stPageLink-NavLink"] {padding: .2rem .6rem; border-radius: 8px}
.st-key-fsviz_siblings {margin-left: -.6rem}
.st-key-fsviz_siblings [data-testid="stPageLink-NavLink"] * {white-space: nowrap !important}
[data-testid="stMainBlockContainer"]:not(:has(.st-key-fsviz_siblings)) {padding-top: 4.9rem}
.st-key-fsviz_answer {border-left: 3px solid var(--primary-color, #3D6FE0); padding-left: .9rem}
[data-testid="stLayoutWrapper"]:has(> .st-key-fsviz_answer):not(:has([data-testid="stMarkdown"])) {display: none}
.st-key-fsviz_answer p {font-size: 1.1rem; line-height: 1.45}
[data-testid="stMainBlockContainer"] [data-testid="stPageLink-NavLink"] * {white-space: normal; overflow: visible}
[data-testid="stMetricValue"] {font-size: 1.6rem}
[data-testid="stMetricLabel"] *, [data-testid="stMetricValue"] *, [data-testid="stMetricDelta"] * {
  white-space: normal !important; overflow: visible; text-overflow: clip; overflow-wrap: anywhere}
[data-testid="stMetricDelta"] {flex-shrink: 1 !important; border-radius: .7rem !important}
[data-testid="stCheckbox"] [data-testid="stWidgetLabel"] * {white-space: normal; overflow: visible; line-height: 1.25}
@media (max-width: 1435px) {
  [data-testid="stToolbar"] {padding-right: 24.5rem}
  .st-key-fsviz_tools [data-testid="stPopoverButton"] [data-testid="stMarkdownContainer"] {position: absolute;
    width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)}
  .st-key-fsviz_tools [data-testid="stPopoverButton"] [aria-hidden]:has([data-testid="stIconMaterial"]) {display: none}
}
@media (max-width: 1240px) {
  [data-testid="stToolbar"] {padding-right: 9rem}
  .st-key-fsviz_tools > *:has(.st-key-find_question), .st-key-find_question {display: none !important}
}
/* Below this width a figure does not fit next to its table, nor do four cards in a row. */
@media (max-width: 1100px) {
  [class*="st-key-stack_"] > * > [data-testid="stHorizontalBlock"] > [data-testid="stColumn"] {min-width: 100%}
  [class*="st-key-pairs_"] > * > [data-testid="stHorizontalBlock"] > [data-testid="stColumn"] {
    min-width: calc(50% - 1rem)}
}
@media (max-width: 999px) {[data-testid="stToolbar"] {padding-right: 10.5rem}}
@media (max-width: 768px) {.st-key-fsviz_siblings {flex-wrap: nowrap !important; overflow-x: auto}}
/* On a phone there is no room for the buttons of a figure. */
@media (max-width: 480px) {.js-plotly-plot .modebar {display: none !important}}
/* A card is one link or button: its own, stretched over all of it. */
[class*="st-key-card_"] {position: relative}
[class*="st-key-card_"]:hover {border-color: var(--st-primary-color, #3D6FE0) !important}
[class*="st-key-card_"] [data-testid="stElementContainer"], [class*="st-key-card_"] [data-testid="stPageLink"],
[class*="st-key-card_"] [data-testid="stPageLink"] > div, [class*="st-key-card_"] a {position: static !important}
[class*="st-key-card_"] :is(.stButton, .stTooltipIcon, .stTooltipHoverTarget, button) {position: static !important}
[class*="st-key-card_"] button {min-height: 0 !important; padding: 0 .5rem !important; border: 0 !important}
[class*="st-key-card_"] button {margin: -.05rem 0 -.3rem}
[class*="st-key-card_"] :is(a, button)::after {content: ""; position: absolute; inset: 0; z-index: 1}
/* It writes cells as they are, and a spreadsheet runs those that look like formulas; exports of our own do not. */
[data-testid="stElementToolbarButton"]:has([aria-label="Download as CSV"]) {display: none}
</style>
"""

CLASSROOM_STYLE = """
<style>
html {font-size: 20px !important}
[data-testid="stCaptionContainer"] {font-size: 1rem !important}
/* The bar stays as large as it is, or its menus would fold. */
[data-testid="stToolbar"], .st-key-fsviz_tools {zoom: .8}
.st-key-fsviz_tools {top: 1rem}
</style>
"""
