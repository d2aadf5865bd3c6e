"""A valid PDF with an empty page. If it were unreadable, the gateway would send a description instead."""

from __future__ import annotations

PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>> endobj\n2 0 obj<</Type/Pages/Count 1/Kids[3 0 R]>> endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>> endobj\nxref\n0 4\n0000000000 65535 f \n"
    b"0000000009 00000 n \n0000000053 00000 n \n0000000103 00000 n \n"
    b"trailer<</Size 4/Root 1 0 R>>\nstartxref\n165\n%%EOF\n"
)
