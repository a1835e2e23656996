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

# To be included after find_package. The wheels' exported targets name include directories of the
# machine they were built on; CMake refuses imported targets whose include directories do not exist.

get_property(imported_targets DIRECTORY PROPERTY IMPORTED_TARGETS)
foreach(imported IN LISTS imported_targets)
  get_target_property(directories ${imported} INTERFACE_INCLUDE_DIRECTORIES)
  if(directories)
    list(FILTER directories EXCLUDE REGEX "^/opt/python/")
    set_target_properties(${imported} PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${directories}")
  endif()
endforeach()
