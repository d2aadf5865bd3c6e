"""Find boxes on a page that overlap, are cut off, or lie outside their container or the window."""

from __future__ import annotations

from typing import Any

WIDTHS = (390, 768, 1280, 1920)

# Only lines of text and controls are compared. Those that a scrolling or clipping ancestor hides are ignored, and
# elements that float above the page may overlap it. Before the measurement, menus and the first dialogs are opened.
BOXES = """() => {
  const wide = document.documentElement.clientWidth, styles = new Map(), clips = new Map(), faults = new Set();
  const style = (element) => styles.get(element) ?? styles.set(element, getComputedStyle(element)).get(element);
  const describe = (element) => (element.closest("[id]")?.id ?? "") + " " + element.localName
    + "." + element.getAttribute("class")
    + " «" + (element.value ?? element.textContent).trim().replace(/\\s+/g, " ").slice(0, 40) + "»";
  const visible = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true })
    && !element.closest(".sr, .skip, .toasts, option, noscript, .hover");
  const floats = (element) => element && element !== document.body && !element.matches("dialog")
    && (["fixed", "sticky", "absolute"].includes(style(element).position) || floats(element.parentElement));
  // The part of the page that ancestors leave visible, and whether one of them scrolls sideways.
  const clip = (element) => {
    if (!element || element === document.documentElement)
      return { left: -1e6, right: 1e6, top: -1e6, bottom: 1e6, scrolls: false };
    if (clips.has(element)) return clips.get(element);
    let { left, right, top, bottom, scrolls } = clip(element.parentElement);
    const { overflowX, overflowY } = style(element);
    if (overflowX !== "visible" || overflowY !== "visible") {
      const box = element.getBoundingClientRect();
      [left, right] = [Math.max(left, box.left), Math.min(right, box.right)];
      [top, bottom] = [Math.max(top, box.top), Math.min(bottom, box.bottom)];
      scrolls ||= ["auto", "scroll"].includes(overflowX) && element.scrollWidth > element.clientWidth;
    }
    clips.set(element, { left, right, top, bottom, scrolls });
    return clips.get(element);
  };
  const boxed = (element) => {
    const { borderTopWidth, borderLeftWidth, backgroundColor, display } = style(element);
    return display !== "inline" && display !== "contents"
      && (parseFloat(borderTopWidth) > 0 && parseFloat(borderLeftWidth) > 0 || !/, 0\\)$/.test(backgroundColor) );
  };
  const container = (element) => !element || element === document.body ? null
    : boxed(element) ? element : container(element.parentElement);
  let items = [];
  const add = (element, rect, from) => {
    if (rect.width < 2 || rect.height < 2) return;
    const seen = clip(from), left = Math.max(rect.left, seen.left), right = Math.min(rect.right, seen.right);
    const top = Math.max(rect.top, seen.top), bottom = Math.min(rect.bottom, seen.bottom);
    if (!seen.scrolls && (right > wide + 1 || left < -1)) faults.add("beyond the window: " + describe(element));
    const around = container(from);
    if (around && !seen.scrolls && !around.contains(document.body)) {
      const box = around.getBoundingClientRect();
      if (right > box.right + 1.5 || left < box.left - 1.5 || bottom > box.bottom + 4 || top < box.top - 4)
        faults.add("outside of " + describe(around).slice(0, 60) + ": " + describe(element));
    }
    if (right - left > 2 && bottom - top > 2 && !floats(element)) items.push({ element, left, right, top, bottom });
  };
  const range = document.createRange();
  const check = (root) => {
    items = [];
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement;
      if (!node.data.trim() || element.matches("textarea, script, style, option") || !visible(element)) continue;
      range.selectNodeContents(node);
      for (const rect of range.getClientRects()) add(element, rect, element);
    }
    const controls = "input:not([type=hidden]), select, textarea, button, progress, .btn, .badge";
    for (const element of root.querySelectorAll(controls)) {
      if (visible(element)) add(element, element.getBoundingClientRect(), element.parentElement);
    }
    for (const box of root.querySelectorAll("label > :is([type=checkbox], [type=radio])")) {
      const words = [...box.parentElement.childNodes].find((node) => node.textContent.trim());
      words && range.selectNodeContents(words);
      const first = words && visible(box) && range.getClientRects()[0];
      if (first?.top >= box.getBoundingClientRect().bottom) faults.add("below its box: " + describe(box.parentElement));
    }
    for (const element of root.querySelectorAll("*")) {
      if (element.scrollWidth <= element.clientWidth + 1 || !element.clientWidth) continue;
      const { overflowX } = style(element), hides = ["hidden", "clip"].includes(overflowX);
      if (overflowX === "visible" || element.matches("input, select, textarea, pre, pre *")) continue;
      if (!visible(element) || !element.textContent.trim()) continue;
      const titled = element.closest("[title]") || element.querySelector("[title]");
      if (hides && !titled) faults.add("cut: " + describe(element));
      if (!hides && !element.querySelector("table, pre")) faults.add("scrolls: " + describe(element));
    }
    items.sort((item, other) => item.top - other.top);
    items.forEach((item, at) => {
      for (let next = at + 1; next < items.length && items[next].top < item.bottom - 3; next++) {
        const other = items[next];
        if (Math.min(item.right, other.right) - Math.max(item.left, other.left) < 3) continue;
        if (Math.min(item.bottom, other.bottom) - other.top < 3) continue;
        if (item.element.contains(other.element) || other.element.contains(item.element)) continue;
        faults.add("overlap: " + describe(item.element) + " and " + describe(other.element));
      }
    });
  };
  const menus = [...document.querySelectorAll("details.menu:not([open])")];
  menus.forEach((menu) => { menu.open = true; });
  check(document.body);
  menus.forEach((menu) => { menu.open = false; });
  for (const dialog of [...document.querySelectorAll("#main dialog[popover]")].slice(0, DIALOGS)) {
    dialog.showPopover();
    [styles, clips].forEach((known) => known.clear());
    check(dialog);
    dialog.hidePopover();
  }
  return [...faults];
}""".replace("DIALOGS", "5")


def measure(page: Any, width: int) -> list[str]:
    """Set the window to the width, and return the loaded page's layout faults."""
    page.set_viewport_size({"width": width, "height": 900})
    return [f"{width}: {fault}" for fault in page.evaluate(BOXES)]
