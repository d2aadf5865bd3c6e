"""A video that the product sends to probe models, in a browser: its word is in the first, middle and last frame."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from capabilities.core.providers.probes.questions import draw_video
from tests.lab.reading_model import word_in
from tests.lab.received_requests import Media

pytestmark = pytest.mark.ui

PLAY = """async ([address, moments]) => {
  const film = document.createElement("video"), canvas = document.createElement("canvas"), drawn = [];
  film.muted = true;
  await new Promise((done, fail) => { film.onloadeddata = done; film.onerror = fail; film.src = address; });
  [canvas.width, canvas.height] = [film.videoWidth, film.videoHeight];
  for (const moment of moments) {
    await new Promise((done) => { film.onseeked = done; film.currentTime = moment; });
    // On a busy machine a frame is decoded, but not yet there to be drawn.
    for (let tries = 0, blank = true; blank && tries < 40; tries++) {
      if (tries) await new Promise((done) => setTimeout(done, 50));
      const pen = canvas.getContext("2d");
      pen.drawImage(film, 0, 0);
      const pixels = new Uint32Array(pen.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
      blank = pixels.every((pixel) => pixel === pixels[0]);
    }
    drawn.push(canvas.toDataURL("image/png").split(",")[1]);
  }
  return [film.duration, drawn];
}"""


def test_probe_video_plays_in_a_browser_and_shows_the_word_in_every_frame(browser: Any) -> None:
    """The product writes the video without an encoder, so a browser has to prove that it can be decoded."""
    page = browser.new_page()
    address = "data:video/mp4;base64," + base64.b64encode(draw_video("UMBRELLA")).decode()
    seconds, pictures = page.evaluate(PLAY, [address, [0.1, 1.5, 2.9]])
    page.close()
    assert seconds == 3
    assert [word_in(Media("", data=base64.b64decode(picture))) for picture in pictures] == ["UMBRELLA"] * 3
