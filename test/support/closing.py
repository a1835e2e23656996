# Copyright 2026 biped_com_ros contributors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Makes rigs for a test, and closes them at its end."""

from contextlib import closing, contextmanager, ExitStack


@contextmanager
def maker(make):
    """Yield a function that makes what `make` does; all of that is closed in the end."""
    with ExitStack() as stack:
        yield lambda *arguments, **values: stack.enter_context(
            closing(make(*arguments, **values)))
