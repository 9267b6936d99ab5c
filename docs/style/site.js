"use strict";
/* On every page: old addresses of entries that have moved, the filter of a page of tables, names of columns, frames of
   pictures, long paths. */

/* layers.html#anabranch.fluid.layers.fc was the entry of fc; it is now on another page, to which this one links. */
function forward() {
  const anchor = decodeURIComponent(location.hash.slice(1));
  if (!anchor || document.getElementById(anchor)) return;
  const link = document.querySelector(`article a[href$="#${CSS.escape(anchor).replace(/\\\./g, ".")}"]`);
  if (link) location.replace(link.href);
}

/* Shows the rows of tables that have all words of the filter, and the headings of tables that still have rows. */
function filterRows(words) {
  let shown = 0;
  for (const table of document.querySelectorAll("article table.filtered")) {
    let rows = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
      rows += !row.hidden;
    }
    table.closest("section").hidden = !rows;
    shown += rows;
  }
  return shown;
}

function startFilter() {
  const box = document.getElementById("row-filter");
  if (!box) return;
  const count = document.getElementById("row-count");
  const apply = () => {
    const shown = filterRows(box.value.toLowerCase().split(/\s+/).filter(Boolean));
    count.textContent = shown === 1 ? "1 row" : `${shown} rows`;
  };
  box.addEventListener("input", apply);
  box.value = new URLSearchParams(location.search).get("name") || "";
  apply();
}

/* On a telephone each cell stands below the other, without the heads of the columns: a cell says what it holds. */
function labelCells() {
  for (const table of document.querySelectorAll("article table.docutils")) {
    const heads = table.tHead ? [...table.tHead.rows[0].cells].map(cell => cell.textContent.trim()) : [];
    if (heads.length < 3) continue;
    for (const row of table.tBodies[0].rows) {
      [...row.cells].slice(1).forEach((cell, i) => {
        if (heads[i + 1] && cell.textContent.trim()) cell.dataset.label = heads[i + 1];
      });
    }
  }
}

/* Text that is drawn at this part of its size can still be read. */
const LEGIBLE = 0.7;
const TALL = 1100;

/* A picture leads to its file. It is whole where its text can be read then; otherwise it scrolls in its frame. */
function fitPicture(picture) {
  const frame = picture.parentElement, scale = Math.min(1, frame.parentElement.clientWidth / picture.naturalWidth);
  frame.classList.toggle("whole", scale >= LEGIBLE && picture.naturalHeight * scale <= TALL);
  frame.classList.toggle("narrowed", scale >= LEGIBLE);
}

function framePictures() {
  for (const picture of document.querySelectorAll("article img[src$='.svg']")) {
    if (picture.closest("a")) continue;
    const link = Object.assign(document.createElement("a"), {className: "picture", href: picture.src});
    link.title = "Open the picture in full size";
    picture.replaceWith(link);
    link.append(picture);
    if (picture.complete) fitPicture(picture);
    else picture.addEventListener("load", () => fitPicture(picture));
  }
}

/* A long path may be cut after a dot or a slash, where a table is narrow. */
function cutPaths() {
  for (const span of document.querySelectorAll("article td code .pre")) {
    const parts = span.textContent.match(/[^./,(]*[./,(]*/g).filter(Boolean);
    if (span.textContent.length < 30 || parts.length < 2) continue;
    span.replaceChildren(...parts.flatMap(part => [part, document.createElement("wbr")]));
    span.style.whiteSpace = "normal";
  }
}

document.addEventListener("DOMContentLoaded", () => {
  forward(); startFilter(); labelCells(); framePictures(); cutPaths();
});
