// Makes and updates elements. Every text is inserted as text, never as HTML.

// An element. A property that begins with "on" is a listener, "class" is its class, all others are attributes.
export function el(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function svg(name, properties = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(properties)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// Changes a text only if it is another one, so that a selection by the reader survives.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Sets a percentage that the style sheet uses as the width of a bar.
export function setShare(element, share) {
  element.style.setProperty("--share", `${Math.max(0, Math.min(1, share || 0)) * 100}%`);
}

// A panel with a heading. `aside` is beside the heading.
export function panel(title, aside, ...children) {
  const heading = el("header", {}, el("h2", {}, title), aside ?? null);
  return el("section", { class: "panel", "aria-label": title }, heading, ...children);
}

// A number with a label. Its `set` changes the value, the unit, the line below and the look.
export function tile(label, { tone, big } = {}) {
  const value = el("dd", { class: "value" });
  const unit = el("small");
  const number = el("span");
  value.append(number, unit);
  const sub = el("dd", { class: "sub" });
  const swatch = tone ? el("i", { class: `swatch tone-${tone}`, "aria-hidden": "true" }) : null;
  const node = el("dl", { class: big ? "tile big" : "tile" }, el("dt", {}, swatch, label), value, sub);
  const set = (text, unitText = "", subText = "", look = "") => {
    setText(number, text);
    setText(unit, unitText);
    setText(sub, subText);
    node.classList.toggle("bad", look === "bad");
    node.classList.toggle("warn", look === "warn");
  };
  return { node, set };
}

export function chip(text, look = "") {
  return el("span", { class: `chip ${look}` }, text);
}

// The state of a list without entries: what it means and what to do next.
export function empty(title, text, code) {
  return el("div", { class: "empty" }, el("b", {}, title), text ? el("p", {}, text) : null, code ? el("code", {}, code) : null);
}
