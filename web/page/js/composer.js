// Where a message is written.

import { h, icon } from "./dom.js";

const touch = matchMedia("(pointer: coarse)");

/** The text field and its button. `send` gets the text once per press. */
export class Composer {
  #send;

  /** @param {(text: string) => void} send */
  constructor(send) {
    this.#send = send;
    this.field = h("textarea", {
      id: "message", rows: "1", dir: "auto", placeholder: "Ask something, or paste a text and ask about it", "aria-label": "Message",
      enterkeyhint: touch.matches ? "enter" : "send", autocomplete: "off",
      onkeydown: (event) => this.#key(event), oninput: () => this.#grow(),
    });
    this.button = h("button", { type: "submit", class: "send", "aria-label": "Send", title: "Send" }, icon("send"));
    this.element = h("form", { class: "composer", onsubmit: (event) => this.#submit(event) },
      h("div", { class: "composer-box" }, this.field, this.button),
      h("p", { class: "hint" }, touch.matches ? "Kept on this device until the service has it." : "Enter sends, Shift and Enter break the line."));
    this.#grow();
  }

  /** Puts a text back for editing, before what is there. */
  put(text) {
    this.field.value = this.field.value ? `${text}\n${this.field.value}` : text;
    this.#grow();
    this.field.focus();
  }

  focus() {
    if (!touch.matches) this.field.focus();
  }

  #key(event) {
    if (event.key !== "Enter" || event.shiftKey || event.altKey || event.ctrlKey || event.metaKey) return;
    // The Enter that ends a composition belongs to the input method. Safari
    // reports it after compositionend, with the key code 229.
    if (event.isComposing || event.keyCode === 229) return;
    if (touch.matches) return; // on-screen keyboards have no Shift+Enter
    event.preventDefault();
    if (event.repeat) return; // a held key is one press
    this.#submit(event);
  }

  #submit(event) {
    event.preventDefault();
    // Empty lines around it are no part of what was said; an indent is.
    const text = this.field.value.replace(/^(\s*\n)+/, "").trimEnd();
    if (text === "") return;
    // Emptied before anything else, so that a second press finds nothing.
    this.field.value = "";
    this.#grow();
    this.#send(text);
  }

  // Browsers with field-sizing need no script for this.
  #grow() {
    this.button.disabled = this.field.value.trim() === "";
    if (CSS.supports("field-sizing", "content")) return;
    this.field.style.height = "auto";
    this.field.style.height = `${this.field.scrollHeight}px`;
  }
}
