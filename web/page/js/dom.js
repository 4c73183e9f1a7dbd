// Small tools for building elements.

/**
 * Makes an element. Text is always set as text; nothing here parses HTML.
 * @param {string} tag
 * @param {Record<string, any>} [props] attributes; on* are listeners, null and false are left out
 * @param {...(Node|string|null|false|undefined)} children
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  apply(element, props);
  element.append(...children.filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

/** The same for SVG. */
export function s(tag, props = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  apply(element, props);
  element.append(...children.filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

function apply(element, props) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
}

/** An icon of icons.svg; it says nothing to a screen reader. */
export function icon(name) {
  return s("svg", { class: "icon", "aria-hidden": "true" }, s("use", { href: `/assets/icons.svg#${name}` }));
}

/** A button with an icon and, unless it is in the label alone, a text. */
export function button({ label, text, picture, className = "quiet-button", onclick, ...rest }) {
  return h("button", { type: "button", class: className, "aria-label": text && text === label ? null : label, title: text ? null : label, onclick: once(onclick), ...rest },
    picture ? icon(picture) : null, text ? h("span", {}, text) : null);
}

// The second click of a double click is part of the same press, and so is
// every click that a held Enter key repeats.
function once(onclick) {
  return (event) => {
    if (event.detail > 1) return;
    onclick(event);
  };
}

// Only this policy may turn a string into HTML (the page's Content-Security-
// Policy names it), and only safeHTML uses it: with what the service rendered
// and made safe. Model text itself never comes this way.
const policy = globalThis.trustedTypes?.createPolicy("onereply-rendered", { createHTML: (html) => html });

/** Shows HTML that the service rendered (a message's or response's `html`). */
export function safeHTML(element, html) {
  element.innerHTML = policy ? policy.createHTML(html) : html;
  for (const link of element.querySelectorAll("a[href]")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer";
  }
  // Wide things scroll by themselves and can be reached with the keyboard.
  for (const wide of element.querySelectorAll("pre, table")) wide.tabIndex = 0;
}

/** Copies text; also on plain http addresses, where the clipboard API is missing. */
export async function copyText(text) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Not allowed here: the old way may be.
    }
  }
  const area = h("textarea", { class: "unseen", "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

/** Says something to screen readers without moving the focus. */
export function announce(text) {
  document.getElementById("announce").textContent = text;
}

/** Asks a question and resolves to true for yes. Escape is no. */
export function ask({ title, text, yes, no = "Cancel" }) {
  const dialog = document.getElementById("ask");
  document.getElementById("ask-title").textContent = title;
  document.getElementById("ask-text").textContent = text;
  document.getElementById("ask-yes").textContent = yes;
  document.getElementById("ask-no").textContent = no;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}
