"""Section ``media.transcriber``: transcription of audio without a transcript."""

from __future__ import annotations

from ..media.rules import Transcription
from .section import Section
from .types import Duration, FilePath, Secret, Switch, Text, Url


class TranscriberOptions(Section):
    """Transcription of audio without a transcript, by a server with OpenAI's ``/audio/transcriptions`` or a model in this process. Off by default."""

    base_url: Url | None = None
    """Address of the server, including the version: ``http://127.0.0.1:8000/v1``."""
    model: Text | None = None
    """Name of the model at the server. Required with ``base_url``."""
    api_key: Secret | None = None
    """API key of the server, as ``${env:NAME}``."""
    path: FilePath | None = None
    """Folder of a faster-whisper model (extra ``[asr]``), instead of a server."""
    language: Text | None = None
    """ISO 639-1 code of the spoken language, such as ``de``. Null lets the model detect it."""
    timeout: Duration = Transcription.timeout
    """Maximum seconds to transcribe one recording."""
    instead_of_sound: Switch = False
    """Send the transcript instead of the audio to judges, for models without audio input."""

    def wanted(self) -> Transcription | None:
        """Return transcription settings, or None without a server or a model. Raises ValueError for incomplete options."""
        if self.path is not None:
            if self.base_url is not None or self.model is not None:
                raise ValueError("path excludes base_url and model. Set either a server or a local model")
            return Transcription(path=self.path, language=self.language, timeout=self.timeout)
        if (self.base_url is None) != (self.model is None):
            missing, given = ("model", "base_url") if self.model is None else ("base_url", "model")
            raise ValueError(f"{given} requires {missing}")
        if self.base_url is None:
            if self.instead_of_sound:
                raise ValueError("instead_of_sound requires base_url and model, or path")
            return None
        return Transcription(self.base_url, self.model or "", self.api_key, None, self.language, self.timeout)
