// Finds sections. sections.js holds SECTIONS: `pages`, a row for each section in `rows`
// ([page, anchor, title, first words]), and in `words` where each word stands, and how often:
// [section, count, section, count, ...].
"use strict";

const TITLE = 2; // what a word in a title counts, beside the text
const PAGE = 1; // and in the title of its page
const ENOUGH = 40; // results

// `all-reduce` and `all_reduce` are one word, as when the pages were read (website/search.py).
const wordsOf = text => text.toLowerCase().replace(/(?<=\w)-(?=\w)/g, "_").match(/[\p{L}\d_]+/gu) ?? [];
const stem = word => word.length > 4 ? word.replace(/(?:ing|ed|es|s)$/, "") : word.replace(/(?<=\w{3})s$/, "");

function find(query) {
  const { rows, words, pages } = SECTIONS;
  const asked = [...new Set(wordsOf(query))];
  let known = 0; // of the words asked for: "the" stands in no index
  const rootsOf = title => new Set(wordsOf(title).map(stem));
  const titles = rows.map(([, , title]) => rootsOf(title));
  const names = pages.map(([, name]) => rootsOf(name));
  const scores = new Map();
  for (const word of asked) {
    const root = stem(word), last = word === asked.at(-1);
    const counts = new Map();
    for (const [other, places] of Object.entries(words)) {
      if (stem(other) !== root && !(last && word.length > 2 && other.startsWith(word))) continue;
      const weight = stem(other) === root ? 1 : 0.3; // a word that is perhaps still being typed
      for (let at = 0; at < places.length; at += 2)
        counts.set(places[at], (counts.get(places[at]) ?? 0) + weight * places[at + 1]);
    }
    known += counts.size > 0;
    const rare = Math.log(1 + rows.length / (1 + counts.size));
    for (const [section, count] of counts) {
      const named = TITLE * titles[section].has(root) + PAGE * names[rows[section][0]].has(root);
      const score = rare * (count / (count + 2) + named);
      const [sum, found] = scores.get(section) ?? [0, 0];
      scores.set(section, [sum + score, found + 1]);
    }
  }
  return [...scores]
    .map(([section, [sum, found]]) => [sum * (found / known) ** 3, section])
    .sort(([one, here], [other, there]) => other - one || here - there)
    .slice(0, ENOUGH)
    .map(([, section]) => section);
}

function show(query) {
  const found = query.trim() ? find(query) : [];
  const list = document.getElementById("search-results");
  list.replaceChildren(...found.map(section => {
    const [page, anchor, title, words] = SECTIONS.rows[section];
    const [address, name] = SECTIONS.pages[page];
    const item = document.createElement("li"), link = document.createElement("a");
    link.href = address + (anchor && `#${anchor}`);
    link.textContent = title;
    const where = document.createElement("small"), said = document.createElement("p");
    where.textContent = name === title ? "" : ` ${name}`;
    said.textContent = words;
    item.append(link, where, said);
    return item;
  }));
  const summary = found.length === ENOUGH ? `The best ${ENOUGH} sections` : `${found.length} sections`;
  document.getElementById("search-summary").textContent = query.trim() ? `${summary} for “${query}”.` : "";
}

const fields = document.querySelectorAll("form.bd-search input[name=q]");
const asked = new URLSearchParams(location.search).get("q") ?? "";
for (const field of fields) {
  field.value = asked;
  field.addEventListener("input", () => show(field.value));
}
show(asked);
document.querySelector("article form.bd-search input")?.focus();
