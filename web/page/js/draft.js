// The live text of an answer that is not saved yet.

import { h } from "./dom.js";

const BLOCK = 2000; // characters after which the next line break starts a new block

/**
 * Shows a growing text. New text is appended once per frame to the last of
 * many small blocks, so that the browser lays out a few lines and not the
 * whole answer again; 200 KB stay as quick as the first word.
 */
export class Draft {
  #waiting = [];
  #frame = 0;
  #last = null;
  #length = 0;
  #shown;

  /** @param {() => void} shown called after text has become visible */
  constructor(shown) {
    this.element = h("div", { class: "draft", dir: "auto", "aria-busy": "true" });
    this.#shown = shown;
  }

  /** Forgets what is there and shows text instead. */
  reset(text) {
    this.#waiting = [];
    this.element.replaceChildren();
    this.#last = null;
    if (text) this.append(text);
  }

  append(text) {
    if (!text) return;
    this.#waiting.push(text);
    if (this.#frame) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#write(this.#waiting.join(""));
      this.#waiting = [];
      this.#shown();
    });
  }

  #write(text) {
    while (text) {
      if (!this.#last) {
        this.#last = h("div", { class: "draft-block", dir: "auto" });
        this.#length = 0;
        this.element.append(this.#last);
      }
      const room = BLOCK - this.#length;
      const cut = text.length > room ? text.indexOf("\n", Math.max(0, room)) : -1;
      const piece = cut < 0 ? text : text.slice(0, cut);
      this.#last.append(piece); // a text node: never parsed
      this.#length += piece.length;
      if (cut < 0) return;
      this.#last = null; // the line break is the block's own
      text = text.slice(cut + 1);
    }
  }
}
