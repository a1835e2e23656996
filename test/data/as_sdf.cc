// Copyright 2026 biped_com_ros contributors
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

// Prints a URDF or SDF file as the SDF that Gazebo makes of it; says what is wrong with it.

#include <cstdlib>
#include <iostream>

#include <sdf/sdf.hh>

int main(int argc, char ** argv)
{
  if (argc != 2) {
    std::cerr << "usage: as_sdf FILE\n";
    return EXIT_FAILURE;
  }
  sdf::Errors errors;
  const sdf::SDFPtr document = sdf::readFile(argv[1], errors);
  // As Gazebo loads it, with checks of what the elements mean, such as of inertias.
  sdf::Root root;
  for (const auto & error : root.Load(argv[1])) {
    errors.push_back(error);
  }
  for (const auto & error : errors) {
    std::cerr << error << '\n';
  }
  if (document) {
    std::cout << document->ToString() << '\n';
  }
  return document && errors.empty() ? EXIT_SUCCESS : EXIT_FAILURE;
}
