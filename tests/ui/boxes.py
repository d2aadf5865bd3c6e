"""Finds boxes on a page that overlap, are cut off, or lie outside of their container or of the window."""

from __future__ import annotations

from typing import Any

WIDTHS = (390, 768, 1280, 1920)

# Only lines of text and controls are compared. Those that a scrolling or clipping ancestor hides are ignored, and
# elements that float above the page may overlap it. Before the measurement, menus and the first dialogs are opened.
BOXES = """() => {
  const wide = document.documentElement.clientWidth, styles = new Map(), clips = new Map(), faults = new Set();
  const style = (one) => styles.get(one) ?? styles.set(one, getComputedStyle(one)).get(one);
  const say = (one) => (one.closest("[id]")?.id ?? "") + " " + one.localName + "." + one.getAttribute("class")
    + " «" + (one.value ?? one.textContent).trim().replace(/\\s+/g, " ").slice(0, 40) + "»";
  const visible = (one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && !one.closest(
    ".sr, .skip, .toasts, option, noscript, .hover");
  const floats = (one) => one && one !== document.body && !one.matches("dialog")
    && (["fixed", "sticky", "absolute"].includes(style(one).position) || floats(one.parentElement));
  // The part of the page that ancestors leave visible, and whether one of them scrolls sideways.
  const clip = (one) => {
    if (!one || one === document.documentElement)
      return { left: -1e6, right: 1e6, top: -1e6, bottom: 1e6, scrolls: false };
    if (clips.has(one)) return clips.get(one);
    let { left, right, top, bottom, scrolls } = clip(one.parentElement);
    const { overflowX, overflowY } = style(one);
    if (overflowX !== "visible" || overflowY !== "visible") {
      const box = one.getBoundingClientRect();
      [left, right] = [Math.max(left, box.left), Math.min(right, box.right)];
      [top, bottom] = [Math.max(top, box.top), Math.min(bottom, box.bottom)];
      scrolls ||= ["auto", "scroll"].includes(overflowX) && one.scrollWidth > one.clientWidth;
    }
    clips.set(one, { left, right, top, bottom, scrolls });
    return clips.get(one);
  };
  const boxed = (one) => {
    const { borderTopWidth, borderLeftWidth, backgroundColor, display } = style(one);
    return display !== "inline" && display !== "contents"
      && (parseFloat(borderTopWidth) > 0 && parseFloat(borderLeftWidth) > 0 || !/, 0\\)$/.test(backgroundColor) );
  };
  const container = (one) => !one || one === document.body ? null : boxed(one) ? one : container(one.parentElement);
  let items = [];
  const add = (one, rect, from) => {
    if (rect.width < 2 || rect.height < 2) return;
    const seen = clip(from), left = Math.max(rect.left, seen.left), right = Math.min(rect.right, seen.right);
    const top = Math.max(rect.top, seen.top), bottom = Math.min(rect.bottom, seen.bottom);
    if (!seen.scrolls && (right > wide + 1 || left < -1)) faults.add("beyond the window: " + say(one));
    const around = container(from);
    if (around && !seen.scrolls && !around.contains(document.body)) {
      const box = around.getBoundingClientRect();
      if (right > box.right + 1.5 || left < box.left - 1.5 || bottom > box.bottom + 4 || top < box.top - 4)
        faults.add("outside of " + say(around).slice(0, 60) + ": " + say(one));
    }
    if (right - left > 2 && bottom - top > 2 && !floats(one)) items.push({ one, left, right, top, bottom });
  };
  const range = document.createRange();
  const check = (root) => {
    items = [];
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const one = node.parentElement;
      if (!node.data.trim() || one.matches("textarea, script, style, option") || !visible(one)) continue;
      range.selectNodeContents(node);
      for (const rect of range.getClientRects()) add(one, rect, one);
    }
    const controls = "input:not([type=hidden]), select, textarea, button, progress, .btn, .badge";
    for (const one of root.querySelectorAll(controls)) {
      if (visible(one)) add(one, one.getBoundingClientRect(), one.parentElement);
    }
    for (const box of root.querySelectorAll("label > :is([type=checkbox], [type=radio])")) {
      const words = [...box.parentElement.childNodes].find((one) => one.textContent.trim());
      words && range.selectNodeContents(words);
      const first = words && visible(box) && range.getClientRects()[0];
      if (first?.top >= box.getBoundingClientRect().bottom) faults.add("below its box: " + say(box.parentElement));
    }
    for (const one of root.querySelectorAll("*")) {
      if (one.scrollWidth <= one.clientWidth + 1 || !one.clientWidth) continue;
      const { overflowX } = style(one), hides = ["hidden", "clip"].includes(overflowX);
      if (overflowX === "visible" || one.matches("input, select, textarea, pre, pre *")) continue;
      if (!visible(one) || !one.textContent.trim()) continue;
      if (hides && !one.closest("[title]") && !one.querySelector("[title]")) faults.add("cut: " + say(one));
      if (!hides && !one.querySelector("table, pre")) faults.add("scrolls: " + say(one));
    }
    items.sort((one, other) => one.top - other.top);
    items.forEach((one, at) => {
      for (let next = at + 1; next < items.length && items[next].top < one.bottom - 3; next++) {
        const other = items[next];
        if (Math.min(one.right, other.right) - Math.max(one.left, other.left) < 3) continue;
        if (Math.min(one.bottom, other.bottom) - other.top < 3) continue;
        if (one.one.contains(other.one) || other.one.contains(one.one)) continue;
        faults.add("overlap: " + say(one.one) + " and " + say(other.one));
      }
    });
  };
  const menus = [...document.querySelectorAll("details.menu:not([open])")];
  menus.forEach((one) => { one.open = true; });
  check(document.body);
  menus.forEach((one) => { one.open = false; });
  for (const one of [...document.querySelectorAll("#main dialog[popover]")].slice(0, DIALOGS)) {
    one.showPopover();
    [styles, clips].forEach((known) => known.clear());
    check(one);
    one.hidePopover();
  }
  return [...faults];
}""".replace("DIALOGS", "5")


def measure(page: Any, width: int) -> list[str]:
    """Set the window to the width, and return the layout faults of the loaded page."""
    page.set_viewport_size({"width": width, "height": 900})
    return [f"{width}: {fault}" for fault in page.evaluate(BOXES)]
